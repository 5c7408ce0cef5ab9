/* A minimal training program on the C header: the header is C, and C can link the library. */
#include <elasticrun/elasticrun.h>
#include <stdio.h>

static float weights[8], grads[8];

static int compute(elasticrun_step* step, void* user) {
  size_t count = 0;
  (void)user;
  elasticrun_step_samples(step, &count);
  grads[0] = (float)count;
  return 0;
}

static int apply(elasticrun_step* step, void* user) {
  (void)step;
  weights[0] += grads[0];
  ++*(int*)user;
  return 0;
}

int main(void) {
  elasticrun_job* job = NULL;
  elasticrun_train_options options = {sizeof options, 12, 1, 4, 0, 0, 0};
  int steps = 0;
  int failed = elasticrun_open(&job) != ELASTICRUN_OK ||
               elasticrun_state(job, "weights", weights, sizeof weights) != ELASTICRUN_OK ||
               elasticrun_gradients(job, "grads", grads, ELASTICRUN_FLOAT32, 8) != ELASTICRUN_OK ||
               elasticrun_train(job, &options, compute, apply, &steps) != ELASTICRUN_OK ||
               weights[0] != 12.0F;
  if (failed) {
    printf("%s\n", elasticrun_error(job));
  } else {
    printf("elasticrun %s: %d worker, %d steps\n", elasticrun_version(), (int)elasticrun_size(job),
           steps);
  }
  elasticrun_close(job);
  return failed;
}
