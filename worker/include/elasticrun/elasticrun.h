/* elasticrun.h: the C interface of libelasticrun, the door of every language.
 *
 * The ABI is stable: functions are only added, option structs carry their size and grow at the end.
 * A job is used by one thread, the one that trains; callbacks run on that thread. The library's own
 * threads never call into the program. Without elasticrun (no ELASTICRUN_SOCKET) a job is a world
 * of one and the same program runs alone.
 *
 * Every function that can fail returns a status; elasticrun_error(job) then holds one line for a
 * person, valid until the next call on that job. */
#ifndef ELASTICRUN_H
#define ELASTICRUN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ELASTICRUN_API __attribute__((visibility("default")))
#else
#define ELASTICRUN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct elasticrun_job elasticrun_job;
typedef struct elasticrun_step elasticrun_step;

typedef enum elasticrun_status {
  ELASTICRUN_OK = 0,
  ELASTICRUN_WORLD_CHANGED = 1, /* own loops: begin the step that elasticrun_committed names */
  ELASTICRUN_EVICTED = 2,       /* this worker is out of the world for good; end quietly with 0 */
  ELASTICRUN_CALLBACK = 3,      /* a callback returned non-zero; training has stopped here */
  ELASTICRUN_MISUSE = 4,        /* a mistake in the program; the text says which */
  ELASTICRUN_FAILED = 5         /* the environment failed: no agent, no memory, no network */
} elasticrun_status;

typedef enum elasticrun_type { ELASTICRUN_FLOAT32 = 0, ELASTICRUN_FLOAT64 = 1 } elasticrun_type;

/* The version of the library that is loaded, "0.1.0". */
ELASTICRUN_API const char* elasticrun_version(void);

/* Connects to the agent of this host (ELASTICRUN_SOCKET), or makes a world of one. *job is set even
 * on failure, so that elasticrun_error can be asked; close it either way. */
ELASTICRUN_API elasticrun_status elasticrun_open(elasticrun_job** job);
ELASTICRUN_API void elasticrun_close(elasticrun_job* job);
ELASTICRUN_API const char* elasticrun_error(const elasticrun_job* job);

/* ---- What survives. Register before the first train or start; the memory stays the program's and
 * must stay where it is. Names are unique, and names, types and sizes equal in every worker. ----
 */

/* Model, optimizer: bytes that apply changes and that newcomers receive. */
ELASTICRUN_API elasticrun_status elasticrun_state(elasticrun_job*, const char* name, void* data,
                                                  size_t bytes);
/* Gradients: compute leaves the mean over its own samples here, apply finds the mean over the
 * global batch. All gradients and buffers of a job have one type. */
ELASTICRUN_API elasticrun_status elasticrun_gradients(elasticrun_job*, const char* name, void* data,
                                                      elasticrun_type type, size_t count);
/* Running statistics: compute finds the committed values and may overwrite them with its own; they
 * are reduced like gradients and become the committed values at commit; in a loop of its own the
 * program reduces them itself. Newcomers receive them. */
ELASTICRUN_API elasticrun_status elasticrun_buffers(elasticrun_job*, const char* name, void* data,
                                                    elasticrun_type type, size_t count);

/* The stream (a cudaStream_t or CUstream) on which compute and apply work, when what is registered
 * lies on the GPU, as all of it may; the default stream until it is said. The library enqueues
 * there as well, so both may return when their work is enqueued: the reduction follows it, apply is
 * called when the reduction has ended on the GPU, and the step is committed when what apply has
 * enqueued is done. all_reduce and broadcast have ended when they return. */
ELASTICRUN_API elasticrun_status elasticrun_stream(elasticrun_job*, void* stream);

/* ---- Training. ---- */

typedef struct elasticrun_train_options {
  size_t struct_size;  /* sizeof(elasticrun_train_options) */
  int64_t samples;     /* in one epoch, > 0 */
  int64_t epochs;      /* > 0 */
  int64_t batch;       /* samples one worker computes efficiently; 0: --batch or --max-batch says */
  int64_t base_batch;  /* batch the learning rate was tuned for; 0: the first global batch */
  int64_t micro_batch; /* most samples one call of compute may get; 0: no limit */
  uint64_t seed;       /* of the order of the samples */
} elasticrun_train_options;

/* Return non-zero to stop training with ELASTICRUN_CALLBACK. */
typedef int (*elasticrun_compute_fn)(elasticrun_step*, void* user);
typedef int (*elasticrun_apply_fn)(elasticrun_step*, void* user);
/* Runs between two steps, on every member, after the last step of each epoch: to evaluate, save,
 * print. When the world changes before the next epoch's first step is committed, or before all
 * members have ended the last one, it runs again in the new world, so that nothing is lost with a
 * rank that dies in it. It must not change registered state (checked: MISUSE); what changes with
 * the epoch is changed in apply, where elasticrun_step_ends_epoch is 1. */
typedef int (*elasticrun_epoch_fn)(int64_t epochs_done, void* user);

ELASTICRUN_API elasticrun_status elasticrun_on_epoch(elasticrun_job*, elasticrun_epoch_fn,
                                                     void* user);
/* MISUSE where no state is registered, or neither gradients nor buffers: what is not registered is
 * neither reduced nor carried to newcomers. A program that has none registers an empty one, of 0
 * bytes or elements.
 *
 * Calls compute, reduces, calls apply, once per step until the samples are used. Blocks until this
 * worker is in a world. Returns OK in the members of the final world, EVICTED elsewhere. For a
 * newcomer, calls that the world has finished return OK at once. State must be the same when the
 * next call begins (checked: MISUSE). */
ELASTICRUN_API elasticrun_status elasticrun_train(elasticrun_job*, const elasticrun_train_options*,
                                                  elasticrun_compute_fn, elasticrun_apply_fn,
                                                  void* user);

/* ---- The step, inside compute and apply. ---- */

/* Indices in [0, samples) of this call of compute; in apply: of this worker's whole share. */
ELASTICRUN_API const uint64_t* elasticrun_step_samples(const elasticrun_step*, size_t* count);
ELASTICRUN_API int64_t
elasticrun_step_number(const elasticrun_step*); /* committed before it, from 0 */
ELASTICRUN_API int64_t elasticrun_step_epoch(const elasticrun_step*);        /* from 0 */
ELASTICRUN_API int64_t elasticrun_step_global_batch(const elasticrun_step*); /* of this step */
/* 1 in the last step of an epoch: the place in apply for what changes with the epoch, such as a
 * learning rate that is part of the state. */
ELASTICRUN_API int elasticrun_step_ends_epoch(const elasticrun_step*);
ELASTICRUN_API double elasticrun_step_lr_factor(const elasticrun_step*);
/* compute: adds x to the figure `name`; at most 32 names, the same in every worker and first used
 * in the same order. apply: elasticrun_step_total is the sum over the world (in the gradients'
 * type). */
ELASTICRUN_API elasticrun_status elasticrun_step_sum(elasticrun_step*, const char* name, double x);
ELASTICRUN_API double elasticrun_step_total(const elasticrun_step*, const char* name);
/* The next `count` samples of this worker if the world stays as it is, for prefetching; returns how
 * many were written. */
ELASTICRUN_API size_t elasticrun_upcoming(const elasticrun_job*, uint64_t* samples, size_t count);

/* ---- The world. 0, 1 and 0 before the first. ---- */
ELASTICRUN_API int32_t elasticrun_rank(const elasticrun_job*);
ELASTICRUN_API int32_t elasticrun_size(const elasticrun_job*);
ELASTICRUN_API uint64_t elasticrun_generation(const elasticrun_job*);

/* ---- A loop of one's own. start, then for each step: compute, all_reduce, apply, commit; at the
 * end finish. While there are steps to make, make the one that elasticrun_committed names: the
 * loop has no count of its own. elasticrun-worker(3) has such a program whole.
 *
 * WORLD_CHANGED, from all_reduce, broadcast, barrier, commit and finish: nothing since the last
 * commit happened. What it did to registered state is undone already (start and each commit copy
 * the state; this takes as much memory again), and maybe a newer state has arrived. Undo nothing;
 * rank, size and committed are those that hold now; begin the step that committed names.
 * EVICTED can come from each call. Not to be mixed with train on one job, nor called from its
 * callbacks. ---- */
/* Blocks until this worker is in a world, and has its state. EVICTED, MISUSE (it registered no
 * state, as for train, or something else than the others) and FAILED, but never WORLD_CHANGED. */
ELASTICRUN_API elasticrun_status elasticrun_start(elasticrun_job*);
/* Sum over the world, in place. */
ELASTICRUN_API elasticrun_status elasticrun_all_reduce(elasticrun_job*, void* data,
                                                       elasticrun_type type, size_t count);
ELASTICRUN_API elasticrun_status elasticrun_broadcast(elasticrun_job*, void* data, size_t bytes,
                                                      int32_t root);
ELASTICRUN_API elasticrun_status elasticrun_barrier(elasticrun_job*);
/* This worker has computed so many more samples in the step under way; counted anew from each
 * commit. Without it no policy can tell how fast the job is, and its size stays as it is. */
ELASTICRUN_API elasticrun_status elasticrun_samples(elasticrun_job*, int64_t count);
/* OK: the step is part of the state of all. Rank and size may be others from here on, since a
 * change of the world that all members agreed to happens in here. */
ELASTICRUN_API elasticrun_status elasticrun_commit(elasticrun_job*);
/* After the last step: returns when every member has called it, so that none is left in the middle
 * of that step. Nothing but close follows. Collectives may stand between the last commit and it, as
 * in an evaluation, and leave registered state as it is; when one of them, or finish, returns
 * WORLD_CHANGED, all that follows the last commit begins again. MISUSE: the state is not as it was
 * committed. */
ELASTICRUN_API elasticrun_status elasticrun_finish(elasticrun_job*);
/* Committed steps of the state this worker holds. */
ELASTICRUN_API int64_t elasticrun_committed(const elasticrun_job*);
/* Leaves the world for good; the others go on. Ending with exit code 0 is then no failure. */
ELASTICRUN_API elasticrun_status elasticrun_leave(elasticrun_job*);

#ifdef __cplusplus
}
#endif
#endif
