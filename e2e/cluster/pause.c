// pause: the process that holds a pod's namespaces. It waits, buries orphans and leaves when told to.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void bury(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction leaving = {.sa_handler = leave};
  struct sigaction burying = {.sa_handler = bury, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGINT, &leaving, 0);
  sigaction(SIGTERM, &leaving, 0);
  sigaction(SIGCHLD, &burying, 0);
  for (;;) pause();
}
