// A CUDA driver and an NCCL without a GPU: one shared object that is loaded in place of both.
//
// GPU memory is host memory with a record of each block; each stream is a thread; ranks, which may
// be threads or processes, move real bytes through shared memory, so collectives give true sums. A
// test can choose which call fails or hangs and which version NCCL has, and can read which calls
// were made. FAKE_GPU_TROUBLE=CALL:NTH:KIND plans a trouble for a process (CALL of NCCL, NTH from
// 1, KIND a name below); FAKE_GPU_LOG=PREFIX writes the calls of each process to PREFIX.PID.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

struct CUstream_st;

namespace elasticrun::fake_gpu {

enum class Trouble {
  fail,    // the call returns an error
  late,    // the work never ends until the communicator is aborted; of an abort: it ends the
           // work, and comes back after release()
  broken,  // the work ends with an asynchronous error
  stuck,   // the call does not come back before release()
};

// Forgets all calls and planned troubles.
void reset();
// Plans a trouble for the nth call of that name from now on, over all ranks of this process.
void plan(const std::string& call, int nth, Trouble trouble);
void release();
void set_version(int nccl_version);
void set_devices(int count);
// From now on each rank that is a thread gets a context of its own, with a default stream of its
// own, as processes would; otherwise a process has one per device, as with the real driver.
void set_ranks_are_threads();

// Names of NCCL's management calls in order, without those that only query.
std::vector<std::string> calls();
int count_of(const std::string& call);
// How often work of NCCL ran while another stream of its rank had work as well.
int overlaps();
// The stream does nothing until the flag is set.
void occupy(CUstream_st* stream, std::shared_ptr<const std::atomic<bool>> until);
// What has not been given back.
int communicators();
int streams();
int events();
std::size_t device_bytes();

}  // namespace elasticrun::fake_gpu
