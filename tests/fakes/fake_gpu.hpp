// A CUDA driver and an NCCL without a GPU: one shared object that is loaded in place of both.
//
// Memory of the GPU is memory of the host that is remembered; each stream is a thread; ranks, which
// may be threads or processes, move real bytes through shared memory, so collectives give true
// sums. What a test plays with: which call fails or hangs, which version it is, what was called.
// FAKE_GPU_TROUBLE=CALL:NTH:KIND says the same to a process (CALL of NCCL, NTH from 1, KIND a name
// below); FAKE_GPU_LOG=PREFIX writes the calls of each process to PREFIX.PID.
#pragma once

#include <string>
#include <vector>

namespace elasticrun::fake_gpu {

enum class Trouble {
  fail,    // the call returns an error
  late,    // the work never ends until the communicator is aborted or revoked
  broken,  // the work ends with an asynchronous error
  stuck,   // the call does not come back before release()
};

// Forgets calls and troubles.
void reset();
// Of the nth call of that name from now on, counted over all ranks of this process.
void plan(const std::string& call, int nth, Trouble trouble);
void release();
void set_version(int nccl_version);
void set_devices(int count);
// Ranks that are threads each retain a context of their own, with a default stream of its own, as
// processes would; else a process has one for each device, as with the real driver.
void set_ranks_are_threads();

// Names of NCCL's management calls in order, without those that only ask.
std::vector<std::string> calls();
int count_of(const std::string& call);
// What is not given back.
int communicators();
int streams();
int events();
std::size_t device_bytes();

}  // namespace elasticrun::fake_gpu
