#pragma once
#ifdef __cplusplus
extern "C" {
#endif
int toy_sum(int n);
const char *toy_flags(void);
const char *toy_file(void);
const char *toy_yaml(void);
#ifdef __cplusplus
}
#endif
