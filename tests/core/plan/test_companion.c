/* torchvision and torchaudio are built against the torch
 * of their release, or what their stable ABI takes. */
#include "support.h"

#include "plan_fixture.h"

static void test_companion_takes_torch_of_its_release(void **state)
{
	struct fixture *f = *state;

	f->v.package = "torchvision";
	f->q.torch = "sha256:00";
	f->q.torch_version = "2.9.0+cu128";
	refuse(f, ERR_POLICY, "torchvision 0.23.0 goes with torch 2.8.0, not 2.9.0+cu128");
	assert_contains(f->e.hint, "--release 2.9.1");
	f->q.torch_version = "2.80.0";
	refuse(f, ERR_POLICY, "not 2.80.0");
	f->q.torch_version = "2.8.1a0+git1";
	(void)resolve(f);
	/* or what its stable ABI takes */
	struct package_row row = *f->s.releases[0].torchvision;
	row.torch = ">=2.8.0";
	f->s.releases[0].torchvision = &row;
	f->q.torch_version = "2.9.0+cu128";
	(void)resolve(f);
	f->q.torch_version = "2.7.1";
	refuse(f, ERR_POLICY, "goes with torch >=2.8.0, not 2.7.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_companion_takes_torch_of_its_release)};
	return cmocka_run_group_tests_name("companion", tests, NULL, NULL);
}
