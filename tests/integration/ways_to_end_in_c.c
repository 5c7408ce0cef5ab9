/* A training that ends in every way, at every place: python_programs/ways_to_end.py in C.
 *
 *     ways_to_end_in_c FORM PLACE ACT
 *
 * raise: the program closes its job and returns 1, in a callback by its status. */
#define _POSIX_C_SOURCE 200809L
#include <elasticrun/elasticrun.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { samples = 160, batch = 4, step_to_act = 10 };

static const char *place, *deed;
static int all; /* each rank acts, and not only the first one */
static elasticrun_job* job;
static double weight, gradient;
static elasticrun_train_options options = {
    .struct_size = sizeof options, .samples = samples, .epochs = 1, .batch = batch};

static void pause_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

/* A text in a new file. Returns 0 if the file is there. */
static int make(const char* file, const char* text) {
  const int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
  const ssize_t length = (ssize_t)strlen(text);
  return fd >= 0 && write(fd, text, (size_t)length) == length && close(fd) == 0;
}

static int make_with(const char* file, long number) {
  char text[32];
  snprintf(text, sizeof text, "%ld", number);
  return make(file, text);
}

/* Until each rank is here, so that none learns of the end of another one before its own. */
static void await_all(int rank) {
  char file[32];
  snprintf(file, sizeof file, "at-%d", rank);
  make(file, "");
  for (int other = 0; other < elasticrun_size(job); ++other) {
    snprintf(file, sizeof file, "at-%d", other);
    while (access(file, F_OK) != 0) pause_ms(1);
  }
}

/* Until the worker that ends between two calls of train is dead. */
static void evaluate(void) {
  while (strcmp(place, "between") == 0 && !all) {
    int pid = 0;
    FILE* const file = fopen("acted", "r");
    if (file) {
      if (fscanf(file, "%d", &pid) != 1) pid = 0;
      fclose(file);
    }
    if (pid > 0 && kill(pid, 0) != 0) return;
    pause_ms(1);
  }
}

/* Returns 1 if the program is to fail. */
static int act(const char* where, int rank) {
  if (strcmp(where, place) != 0 || (!all && rank != 0)) return 0;
  if (!all && strcmp(where, "between") == 0 && !make_with("acted", getpid())) return 0;
  if (strcmp(where, "step") == 0) await_all(rank);
  if (strcmp(deed, "zero") == 0) _exit(0);
  if (strcmp(deed, "three") == 0) _exit(3);
  if (strcmp(deed, "crash") == 0) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler for it */
    kill(getpid(), SIGSEGV);
  }
  if (strcmp(deed, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(deed, "slow") == 0) pause_ms(2500);
  return strcmp(deed, "raise") == 0;
}

/* In that step: 0 to train on, 1 to fail, 2 after having left. */
static int acts_or_leaves(int64_t step) {
  if (step == step_to_act && act("step", elasticrun_rank(job))) return 1;
  if (strcmp(place, "left") != 0 || step < step_to_act) return 0;
  return elasticrun_leave(job) == ELASTICRUN_OK ? 2 : 1;
}

static int compute(elasticrun_step* step, void* user) {
  (void)user;
  gradient = 1;
  return elasticrun_step_number(step) == step_to_act && act("step", elasticrun_rank(job));
}

static int apply(elasticrun_step* step, void* user) {
  (void)step, (void)user;
  weight += gradient;
  return 0;
}

/* The forms return 0 when the training has ended well, or the worker has left. */
static int calls(void) {
  if (elasticrun_train(job, &options, compute, apply, NULL) != ELASTICRUN_OK) return 1;
  if (act("between", elasticrun_rank(job))) return 1;
  evaluate();
  return elasticrun_train(job, &options, compute, apply, NULL) != ELASTICRUN_OK;
}

static int steps(void) {
  elasticrun_step* step = NULL;
  if (elasticrun_begin(job, &options) != ELASTICRUN_OK) return 1;
  for (;;) {
    if (elasticrun_next(job, &step) != ELASTICRUN_OK) return 1;
    if (!step) return 0;
    if (elasticrun_step_epochs_done(step) > 0) continue;
    const int how = acts_or_leaves(elasticrun_step_number(step));
    if (how != 0) return how == 1;
    gradient = 1;
    if (!elasticrun_step_last_piece(step)) continue;
    const elasticrun_status reduced = elasticrun_reduce(job);
    if (reduced == ELASTICRUN_WORLD_CHANGED) continue;
    if (reduced != ELASTICRUN_OK) return 1;
    weight += gradient;
    if (elasticrun_commit(job) != ELASTICRUN_OK) return 1;
  }
}

static elasticrun_status own_step(void) {
  elasticrun_status status = elasticrun_all_reduce(job, &gradient, ELASTICRUN_FLOAT64, 1);
  if (status == ELASTICRUN_OK) status = elasticrun_samples(job, batch);
  if (status != ELASTICRUN_OK) return status;
  weight += gradient;
  return elasticrun_commit(job);
}

static int own(void) {
  elasticrun_status status = elasticrun_start(job);
  while (status == ELASTICRUN_OK || status == ELASTICRUN_WORLD_CHANGED) {
    if (elasticrun_committed(job) >= samples / (2 * batch)) {
      status = elasticrun_finish(job);
      if (status == ELASTICRUN_OK) return 0;
      continue;
    }
    const int how = acts_or_leaves(elasticrun_committed(job));
    if (how != 0) return how == 1;
    gradient = 1;
    status = own_step();
  }
  return 1;
}

static int run(const char* form) {
  const int is_own = strcmp(form, "own") == 0;
  if (elasticrun_state(job, "weight", &weight, sizeof weight) != ELASTICRUN_OK) return 1;
  if (!is_own &&
      elasticrun_gradients(job, "gradient", &gradient, ELASTICRUN_FLOAT64, 1) != ELASTICRUN_OK)
    return 1;
  if (act("opened", atoi(getenv("RANK")))) return 1;
  if (is_own ? own() : strcmp(form, "calls") == 0 ? calls() : steps()) return 1;
  const int rank = elasticrun_rank(job);
  if (act("left", rank) || act("end", rank)) return 1;
  if (rank == 0) make("model", "whole");
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("ways_to_end_in_c FORM PLACE ACT\n", stderr);
    return 2;
  }
  place = argv[2];
  all = strncmp(argv[3], "all:", 4) == 0;
  deed = argv[3] + (all ? 4 : 0);
  const int failed = elasticrun_open(&job) != ELASTICRUN_OK || run(argv[1]);
  if (failed) fprintf(stderr, "ways_to_end_in_c: %s\n", elasticrun_error(job));
  elasticrun_close(job);
  return failed;
}
