/* The program: signals become a descriptor, the
 * error is printed once, its kind is the exit code. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
#include "base/term.h"
#include "base/text.h"
#include "cmd/cmd.h"

/* A closed descriptor would be reused by the next open(), and the program's output would go into
 * that file. Its replacement is open only in the other direction. */
static void fill_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int open_cancel(void)
{
	signal(SIGPIPE, SIG_IGN);
	/* a write past a file size limit then fails with a message, as on a full disk */
	signal(SIGXFSZ, SIG_IGN);
	return os_open_cancel(); /* everything that waits, waits for it too */
}

/* Whatever the caller's umask: the owner can use what is made here, and others
 * cannot write it, since nobody can trust a store that everybody may write. */
static void mend_umask(void)
{
	mode_t given = umask(0);
	umask((given | S_IWOTH) & ~(mode_t)S_IRWXU);
}

/* Prints text of a build or a server: all lines below the first are indented, so that none looks
 * like one of ptbuild's own. */
static void show(struct buf *out, const char *words)
{
	AUTO_BUF struct buf shown = {0};

	utf8_show(&shown, words, strlen(words), false);
	for (const char *p = buf_cstr(&shown); *p; p++) {
		buf_addc(out, *p);
		if (*p == '\n' && p[1] && p[1] != ' ')
			buf_addstr(out, "  ");
	}
}

int main(int argc, char **argv)
{
	struct log log;
	struct err e = {0};

	fill_standard();
	log_init(&log, STDERR_FILENO, LOG_NORMAL);
	mend_umask();
	struct run run = {.log = &log, .cancel_fd = open_cancel()};
	if (cmd_main(argc, argv, &run, &e) == 0)
		return 0;
	log_status_end(&log);
	AUTO_BUF struct buf word = {0};
	term_style(&word, &(struct term){.colour = log.colour}, TERM_RED, "error:");
	AUTO_BUF struct buf text = {0};
	show(&text, e.msg);
	if (e.hint[0]) {
		buf_addstr(&text, "\nhint: ");
		show(&text, e.hint);
	}

	fprintf(stderr, "ptbuild: %s %s\n", buf_cstr(&word), buf_cstr(&text));
	return (int)e.kind;
}
