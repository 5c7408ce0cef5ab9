/* elasticrun.h: the C interface of libelasticrun, on which the interface of every other language
 * is built.
 *
 * The ABI is stable: functions are only added, option structs carry their size and grow at the end.
 * A job is used by one thread, the one that trains; callbacks run on that thread. The library's own
 * threads never call into the program. Without elasticrun (ELASTICRUN_SOCKET is not set) a job is a
 * world of one, and the same program runs alone.
 *
 * Every function that can fail returns a status; elasticrun_error(job) then holds one line of text
 * for the user. In addition to the errors listed with each function, every function that takes a
 * job and returns a status returns MISUSE when the job is null, belongs to the parent of a forked
 * process, or is used inside compute, apply or on_epoch, and FAILED when it could not be opened. */
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
  ELASTICRUN_WORLD_CHANGED = 1, /* own loops: nothing since the last commit happened */
  ELASTICRUN_EVICTED = 2,       /* this worker is out of the world for good; end quietly with 0 */
  ELASTICRUN_CALLBACK = 3,      /* a callback returned non-zero; training has stopped here */
  ELASTICRUN_MISUSE = 4,        /* a mistake in the program; the error text says which */
  ELASTICRUN_FAILED = 5         /* the environment failed: no agent, no memory, no network */
} elasticrun_status;

/* The last two are for buffers alone. */
typedef enum elasticrun_type {
  ELASTICRUN_FLOAT32 = 0,
  ELASTICRUN_FLOAT64 = 1,
  ELASTICRUN_BFLOAT16 = 2,
  ELASTICRUN_FLOAT16 = 3, /* IEEE 754 binary16 */
  ELASTICRUN_INT32 = 4,
  ELASTICRUN_INT64 = 5
} elasticrun_type;

/* Returns the version of the loaded library, such as "0.1.0"; never null, never freed. */
ELASTICRUN_API const char* elasticrun_version(void);

/* Connects to the agent of this host (ELASTICRUN_SOCKET), or makes a world of one. *job is set even
 * on failure, so that elasticrun_error can be called; close it in either case. Returns MISUSE when
 * job is null, or a process of this worker has trained before; FAILED when the agent has not
 * answered within 5 seconds, the environment variables are not as elasticrun sets them, --backend
 * nccl cannot be used on this host, or memory is short (*job may then be null). */
ELASTICRUN_API elasticrun_status elasticrun_open(elasticrun_job** job);
/* Frees the job, and leaves the world if it is in one. In a loop of begin or start that is not over
 * this is a failure of the program; call leave first to leave one. Does nothing for null and in a
 * forked child. Aborts the process when called inside a callback. */
ELASTICRUN_API void elasticrun_close(elasticrun_job* job);
/* Returns the text of the last error, one line, never null; empty when there was none. Valid until
 * the next call on that job. For a null job the text is "out of memory". */
ELASTICRUN_API const char* elasticrun_error(const elasticrun_job* job);

/* ---- Registration: what survives a change of the world. Register before the first train or start;
 * the memory still belongs to the program and must stay where it is. Names are unique; names, types
 * and sizes are the same in every worker, in the same order.
 *
 * All three functions return MISUSE when the name is null, empty or taken, data is null though its
 * size is not 0, the type is unknown, train or start has been called, or data lies on a GPU other
 * than this worker's. train, enter, begin and start return it when gradients or buffers share
 * memory with anything else that is registered. */

/* Registers `bytes` bytes that apply changes (model, optimizer) and that newcomers receive. */
ELASTICRUN_API elasticrun_status elasticrun_state(elasticrun_job*, const char* name, void* data,
                                                  size_t bytes);
/* Registers `count` elements as gradients: compute leaves the mean over its own samples here, apply
 * finds the mean over the global batch. They may be of several types, but not integers; all
 * gradients and buffers of a job lie on the GPU or all on the host (otherwise MISUSE). On the host
 * those of 16 bits are summed as float32 and rounded once; on the GPU NCCL sums them as they are.
 */
ELASTICRUN_API elasticrun_status elasticrun_gradients(elasticrun_job*, const char* name, void* data,
                                                      elasticrun_type type, size_t count);
/* Registers `count` elements as running statistics: compute finds the committed values and may
 * overwrite them with its own. They are reduced like gradients and become the committed values at
 * commit; in a loop of its own the program reduces them itself. Newcomers receive them. Integers
 * (a counter of batches) have no mean: all get those of the first rank that has samples in the
 * step. Returns what elasticrun_gradients returns. */
ELASTICRUN_API elasticrun_status elasticrun_buffers(elasticrun_job*, const char* name, void* data,
                                                    elasticrun_type type, size_t count);

/* An array of a state source; in make_room data is null. */
typedef struct elasticrun_array {
  const char* name;
  void* data;
  size_t bytes;
} elasticrun_array;
typedef struct elasticrun_listing elasticrun_listing;

/* State that is not there from the start, or not always in the same memory, such as what an
 * optimizer allocates in its first step; and small objects. The functions run on the training
 * thread, between two steps, return 0, or any other value to stop training with CALLBACK, and do
 * not call into the job. */
typedef struct elasticrun_source {
  size_t struct_size; /* sizeof(elasticrun_source) */
  /* Says what there is at present, with elasticrun_list_array and elasticrun_list_objects: for a
   * newcomer, for a save, and in a loop of start in state_source, at each commit, and when a step
   * did not happen. Equal in all workers that are at the same step. Memory on the GPU is that of
   * the worker's own. */
  int (*list)(elasticrun_listing*, void* user);
  /* In a worker that receives the state: afterwards list says these names and sizes, in this order.
   * What it said before keeps its values, for the transfer may still fail. In a loop of start also
   * when a step did not happen, for what that step has made, dropped or replaced; none may be
   * wanted. */
  int (*make_room)(const elasticrun_array* wanted, size_t count, void* user);
  /* In a worker that has received the state: the objects of another worker. In a loop of start also
   * its own, as they were at the last commit, when a step did not happen. Null: there are none. */
  int (*take_objects)(const void* data, size_t bytes, void* user);
  void* user;
} elasticrun_source;

/* From now on the state is what is registered and what this source lists; replaces the source set
 * before, and null removes it. A worker that receives the state needs it before it trains; it may
 * be replaced between two steps. Returns MISUSE when list or make_room is null, struct_size is not
 * set, or a step is under way: from next to commit, or from reduce at the end of an epoch; in a
 * loop of start from the first collective, or when registered state has changed since the last
 * commit. There it calls list, and returns CALLBACK or FAILED as commit does. Members compare what
 * is registered, not what a source lists. */
ELASTICRUN_API elasticrun_status elasticrun_state_source(elasticrun_job*, const elasticrun_source*);
/* In list: adds an array that steps change; it stays where it is until list is called again.
 * Returns MISUSE when listing or name is null, FAILED when memory is short; sets no error text. */
ELASTICRUN_API elasticrun_status elasticrun_list_array(elasticrun_listing*, const char* name,
                                                       void* data, size_t bytes);
/* In list: the program's objects as bytes that only take_objects reads, at most 64 MiB; copied.
 * They are those of one worker. Returns what elasticrun_list_array returns. */
ELASTICRUN_API elasticrun_status elasticrun_list_objects(elasticrun_listing*, const void* data,
                                                         size_t bytes);

/* Sets the stream (a cudaStream_t or CUstream) on which compute and apply work when registered
 * memory lies on the GPU; all of it may. Null, and the value before the first call, is the default
 * stream. Call it before the first train or start. The library enqueues on the same stream, so
 * compute and apply may return when their work is enqueued: the reduction follows that work, apply
 * is called when the reduction has ended on the GPU, and the step is committed when what apply has
 * enqueued is done. all_reduce and broadcast have ended when they return. */
ELASTICRUN_API elasticrun_status elasticrun_stream(elasticrun_job*, void* stream);

/* ---- Training. ---- */

typedef struct elasticrun_train_options {
  size_t struct_size;  /* sizeof(elasticrun_train_options) */
  int64_t samples;     /* number of samples in one epoch, > 0 */
  int64_t epochs;      /* number of epochs, > 0 */
  int64_t batch;       /* samples one worker computes efficiently; 0: set by --batch, --max-batch */
  int64_t base_batch;  /* global batch the learning rate was tuned for; 0: the first global batch,
                          which depends on the number of workers at the start */
  int64_t micro_batch; /* most samples one call of compute may get; 0: no limit */
  uint64_t seed;       /* seed of the order of the samples */
  int64_t bucket_bytes; /* gradients are reduced in buckets of about that size while others are
                           computed (elasticrun_step_ready); 0: all after compute. 25 MB is usual */
  int64_t epoch_steps;  /* in a loop of begin, 1: the end of an epoch is a step without samples,
                           which reduce and commit follow, and is told again until it is committed;
                           what the program changes there before, it puts back itself */
} elasticrun_train_options;

/* Compute and apply; both return 0, or any other value to stop training with CALLBACK. */
typedef int (*elasticrun_compute_fn)(elasticrun_step*, void* user);
typedef int (*elasticrun_apply_fn)(elasticrun_step*, void* user);
/* Runs between two steps, on every member, after the last step of each epoch: to evaluate, save,
 * print. Returns 0, or any other value to stop training with CALLBACK. It runs again in the new
 * world when the world changes before the first step of the next epoch is committed, or before all
 * members have ended the last epoch, so nothing is lost when a rank dies inside it. It must not
 * change registered state (checked: MISUSE); what changes with the epoch is changed in apply, where
 * elasticrun_step_ends_epoch is 1. epochs_done counts from 1. */
typedef int (*elasticrun_epoch_fn)(int64_t epochs_done, void* user);

/* Sets the function to call after each epoch, with `user` as its last argument; replaces the one
 * set before, and null removes it. */
ELASTICRUN_API elasticrun_status elasticrun_on_epoch(elasticrun_job*, elasticrun_epoch_fn,
                                                     void* user);
/* Calls compute, reduces, calls apply, once per step until the samples are used. Blocks until this
 * worker is in a world. With an empty share compute is not called. For a newcomer, calls that the
 * world has already finished return OK at once. Returns
 * OK        in the members of the final world;
 * EVICTED   in a worker that is out of the world for good;
 * CALLBACK  when a callback returned non-zero; this worker is then out of the world;
 * MISUSE    when compute, apply or the options are null, an option is out of range (samples and
 *           epochs: 1 to 2^40; the others: 0 to 2^40), no batch is set
 *           anywhere, start has been called, the workers' options or registrations differ, or
 *           registered state was changed outside apply: in compute, in on_epoch or since the
 *           previous call of train. Also when no state is registered, or neither gradients nor
 *           buffers: what is not registered is neither reduced nor carried to newcomers. A program
 *           that has none registers an empty one, of 0 bytes or elements;
 * FAILED    when the GPU fails, the agent is gone or memory is short. */
ELASTICRUN_API elasticrun_status elasticrun_train(elasticrun_job*, const elasticrun_train_options*,
                                                  elasticrun_compute_fn, elasticrun_apply_fn,
                                                  void* user);

/* ---- The step, inside compute and apply. The step must not be null, except where noted. ---- */

/* Returns *count sample indices in [0, samples), valid until the callback returns: in compute those
 * of this call, in apply those of this worker's whole share. count may be null. */
ELASTICRUN_API const uint64_t* elasticrun_step_samples(const elasticrun_step*, size_t* count);
/* From any thread, in the last piece of a step: says that gradient number `gradient` (in order of
 * registration, from 0) is final, so that with bucket_bytes it can be reduced while others are
 * computed; the program does not touch it before apply. The last registered gradients should be
 * ready first, as they are in a backward pass. Those that nobody reports are reduced after compute.
 * On a GPU the gradient is final when the stream has done what it was given before. Nothing starts
 * without bucket_bytes and in earlier pieces, and for a step that is over nothing happens. Returns
 * MISUSE when step is null or there is no such gradient, FAILED when the GPU fails. */
ELASTICRUN_API elasticrun_status elasticrun_step_ready(elasticrun_step*, size_t gradient);
/* The same for `count` gradients whose values are not in the registered memory: gradient
 * gradients[i] is at data[i], laid out as it would be there and like it on the GPU or the host, or
 * in its own place where data[i] is null. That memory is not freed or changed before the next piece
 * begins, or apply, or elasticrun_reduce has returned; on a GPU by nothing that the stream is given
 * before. The mean is in the registered memory as ever. With MISUSE for one that there is not, the
 * others are reported. */
ELASTICRUN_API elasticrun_status elasticrun_step_ready_at(elasticrun_step*, const size_t* gradients,
                                                          const void* const* data, size_t count);
/* Like ready, but this call of compute has not set the gradient: it counts as zero, whatever its
 * memory holds. */
ELASTICRUN_API elasticrun_status elasticrun_step_unset(elasticrun_step*, size_t gradient);
/* In apply: returns 0 when no worker has set that gradient in the step (elasticrun_step_unset), and
 * when there is none; its memory then holds zeros. Otherwise 1. */
ELASTICRUN_API int elasticrun_step_is_set(const elasticrun_step*, size_t gradient);
/* Returns the number of the gradient of that name, for the functions above; -1: there is none. */
ELASTICRUN_API int64_t elasticrun_step_gradient(const elasticrun_step*, const char* name);
/* Returns 1 when this is the last piece of this worker's share in the step, otherwise 0. */
ELASTICRUN_API int elasticrun_step_last_piece(const elasticrun_step*);
/* From elasticrun_next: returns 0 in a step; where an epoch has ended, the number of those that
 * have, from 1. */
ELASTICRUN_API int64_t elasticrun_step_epochs_done(const elasticrun_step*);
/* Returns the number of steps committed before this one, over all calls of train, from 0. */
ELASTICRUN_API int64_t elasticrun_step_number(const elasticrun_step*);
/* Returns the epoch within this call of train, from 0. */
ELASTICRUN_API int64_t elasticrun_step_epoch(const elasticrun_step*);
/* Returns the global batch of this step in samples; the last one of an epoch may be smaller. */
ELASTICRUN_API int64_t elasticrun_step_global_batch(const elasticrun_step*);
/* Returns 1 in the last step of an epoch, otherwise 0: the place in apply for what changes with the
 * epoch, such as a learning rate that is part of the state. */
ELASTICRUN_API int elasticrun_step_ends_epoch(const elasticrun_step*);
/* In apply: returns the factor for the learning rate in this step, as --lr-rule sets it. */
ELASTICRUN_API double elasticrun_step_lr_factor(const elasticrun_step*);
/* In compute: adds x to the sum called `name`, a metric such as the loss. At most 32 names of 1 to
 * 256 bytes, the same in every worker and first used in the same order. Returns MISUSE for another
 * name, for null and outside compute, FAILED when memory is short; sets no error text. */
ELASTICRUN_API elasticrun_status elasticrun_step_sum(elasticrun_step*, const char* name, double x);
/* In apply: returns the sum called `name` over the world; 0 for a name that no worker has used, and
 * for null. */
ELASTICRUN_API double elasticrun_step_total(const elasticrun_step*, const char* name);
/* For prefetching: writes up to `count` sample indices, the next ones of this worker if the world
 * stays as it is, and returns the number written; 0 outside train. */
ELASTICRUN_API size_t elasticrun_upcoming(const elasticrun_job*, uint64_t* samples, size_t count);
/* The same for the piece that comes after `ahead` others, as compute and elasticrun_next get them:
 * returns the number of its samples, of which up to `room` are written; -1 when the epoch ends
 * before, and outside train and such a loop. */
ELASTICRUN_API int64_t elasticrun_upcoming_piece(const elasticrun_job*, size_t ahead,
                                                 uint64_t* samples, size_t room);

/* ---- The present world. 0, 1 and 0 before the first world, and for a null job. ---- */

/* Returns the rank of this worker, 0 to size - 1. */
ELASTICRUN_API int32_t elasticrun_rank(const elasticrun_job*);
/* Returns the number of ranks. */
ELASTICRUN_API int32_t elasticrun_size(const elasticrun_job*);
/* Returns the generation, which grows with each new world. */
ELASTICRUN_API uint64_t elasticrun_generation(const elasticrun_job*);
/* Returns the number of samples of a step; the last step of an epoch may have fewer. 0 as long as
 * neither the program nor the command line has named a batch. */
ELASTICRUN_API int64_t elasticrun_global_batch(const elasticrun_job*);

/* ---- train, as a loop of the program. begin, then for each step: next, compute, reduce, apply,
 * commit, until next gives none. All that is said of train, compute and apply holds here, too: what
 * it needs, what it checks, what a newcomer gets. on_epoch is not called: next tells the end of an
 * epoch.
 *
 *     elasticrun_begin(job, &options);
 *     while (elasticrun_next(job, &step) == ELASTICRUN_OK && step) {
 *       if (elasticrun_step_epochs_done(step) > 0) { evaluate_and_save(); continue; }
 *       compute(step);                                      the mean over the step's samples
 *       if (!elasticrun_step_last_piece(step)) continue;    only with micro_batch
 *       if (elasticrun_reduce(job) == ELASTICRUN_WORLD_CHANGED) continue;
 *       apply(step);                                        finds the mean over the global batch
 *       elasticrun_commit(job);
 *     }
 *
 * Each call can return EVICTED, FAILED and MISUSE as train does, and MISUSE when called out of
 * turn; after one of these the loop is over. The program's time between a commit, or the end of an
 * epoch, and next counts as no step's; a hang in it is found after --epoch-timeout.
 *
 * With epoch_steps, elasticrun_all_reduce and elasticrun_barrier may stand at the end of an epoch,
 * before its reduce, as for the figures of an evaluation. All workers make the same calls in the
 * same order; when they do not, all get MISUSE. WORLD_CHANGED: the call did not happen, its memory
 * holds anything, later calls at this end do not happen either, and neither does reduce; next tells
 * the end again. A call that has happened here may be one that did not happen elsewhere. ---- */

/* Before begin: blocks until this worker is in a world and has its state. *epoch is then the epoch,
 * from 0, in which the next call of train goes on in that world, or INT64_MAX when the world has
 * finished that call: now, if options->epochs have ended, as after a stop that came with the last
 * of them. `options` may be null, or have no samples, where the program does not know them yet; the
 * world then begins again with the batch that begin names. Returns what begin does, and MISUSE when
 * epoch is null. */
ELASTICRUN_API elasticrun_status elasticrun_enter(elasticrun_job*,
                                                  const elasticrun_train_options* options,
                                                  int64_t* epoch);
/* Begins a call of train. Blocks for no one. */
ELASTICRUN_API elasticrun_status elasticrun_begin(elasticrun_job*, const elasticrun_train_options*);
/* Sets *step to what comes next, valid until the next call of next: a step's samples, which may be
 * none, for this worker to compute; or the end of an epoch (elasticrun_step_epochs_done). Null: all
 * samples are used, and begin may follow. Blocks until this worker is in a world, which may be a
 * new one: only here rank and size change. Returns MISUSE when step is null, after a last piece
 * without reduce, after reduce without commit, and when registered state was changed at the end of
 * an epoch. */
ELASTICRUN_API elasticrun_status elasticrun_next(elasticrun_job*, elasticrun_step** step);
/* After the last piece of a step: OK when gradients and buffers are the mean over the global batch,
 * and the step has its totals. WORLD_CHANGED: the step did not happen, and nothing of it is left in
 * registered memory but its gradients; next gives its samples again. Returns MISUSE before the last
 * piece, and when registered state was changed since the last commit. */
ELASTICRUN_API elasticrun_status elasticrun_reduce(elasticrun_job*);

/* ---- A loop of one's own. start, then for each step: compute, all_reduce, apply, commit; at the
 * end finish. While there are steps to make, make the one that elasticrun_committed names: the
 * loop keeps no count of its own. elasticrun-worker(3) has a complete program.
 *
 * WORLD_CHANGED, from all_reduce, broadcast, barrier, commit and finish: nothing since the last
 * commit happened. What the step did to registered state is already undone (start and each commit
 * copy the state, which takes as much memory again), or a newer state has arrived. Undo nothing;
 * rank, size and committed are those of the world that the next step is made in; begin the step
 * that committed names.
 *
 * Apart from samples and leave, each call can return EVICTED, and FAILED when the GPU fails, the
 * agent is gone or memory is short. All but start and leave return MISUSE before start and after
 * finish. Do not mix these calls with train on one job. ---- */

/* Blocks until this worker is in a world and has its state. Returns MISUSE when no state is
 * registered (as for train), this worker has registered something else than the others, or start
 * or train has been called before; never WORLD_CHANGED. */
ELASTICRUN_API elasticrun_status elasticrun_start(elasticrun_job*);
/* Sums `count` elements over the world, in place; also at the end of an epoch in a loop of begin
 * with epoch_steps. Returns MISUSE when data is null though count is not 0, the type is unknown or
 * an integer, or data lies on a GPU that the library did not know at start. */
ELASTICRUN_API elasticrun_status elasticrun_all_reduce(elasticrun_job*, void* data,
                                                       elasticrun_type type, size_t count);
/* The same without waiting: the memory belongs to the library until all_reduce_wait, or whatever
 * waits for it, has returned, OK or not. Several may be under way; they are done in this order. On
 * a GPU each comes after what the program has enqueued before. The other collectives, commit and
 * finish wait for all of them first. */
ELASTICRUN_API elasticrun_status elasticrun_all_reduce_start(elasticrun_job*, void* data,
                                                             elasticrun_type type, size_t count);
/* Waits for all that were started. */
ELASTICRUN_API elasticrun_status elasticrun_all_reduce_wait(elasticrun_job*);
/* Copies `bytes` bytes from rank `root` to all ranks. Returns MISUSE for data as all_reduce does,
 * and when root is not in the world. */
ELASTICRUN_API elasticrun_status elasticrun_broadcast(elasticrun_job*, void* data, size_t bytes,
                                                      int32_t root);
/* Blocks until all ranks have called it; where all_reduce may be called. */
ELASTICRUN_API elasticrun_status elasticrun_barrier(elasticrun_job*);
/* Adds `count` to the number of samples that this worker has computed in the step under way; each
 * commit sets it back to 0. Without it no policy can tell how fast the job is, and its size stays
 * as it is. Returns MISUSE when count is not in 0 to 2^40. */
ELASTICRUN_API elasticrun_status elasticrun_samples(elasticrun_job*, int64_t count);
/* Commits the step, in a loop of start or of begin (where a save that is due is made in next). OK:
 * the step is part of the state of all. Rank and size may differ afterwards, since a change of the
 * world that all members agreed to happens in this call. In a loop of start it returns MISUSE when
 * the ranks have called different collectives since the last commit: on all of them, and they are
 * out of the world; or on newcomers alone, if all others have committed here before. */
ELASTICRUN_API elasticrun_status elasticrun_commit(elasticrun_job*);
/* After the last step: returns when every member has called it, so that no member is left in the
 * middle of that step. Only close follows. Collectives may stand between the last commit and
 * finish, as in an evaluation, and leave registered state as it is; when one of them, or finish,
 * returns WORLD_CHANGED, all that follows the last commit begins again. Returns MISUSE when the
 * state in the host's memory is not as it was committed. */
ELASTICRUN_API elasticrun_status elasticrun_finish(elasticrun_job*);
/* Returns the number of committed steps in the state that this worker holds; 0 before the first
 * world. The next step has this number. */
ELASTICRUN_API int64_t elasticrun_committed(const elasticrun_job*);
/* Leaves the world for good; the others train on. Blocks until they have ended their step, at most
 * 30 seconds. No deadline ends the program after that, and its
 * exit code counts: 0 is no failure. Also for programs that use train, between two calls of it. */
ELASTICRUN_API elasticrun_status elasticrun_leave(elasticrun_job*);

#ifdef __cplusplus
}
#endif
#endif
