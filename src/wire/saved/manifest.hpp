// What is written about a save of the state, beside the state itself. As for messages, a declared
// struct is the format; unknown members are ignored and missing ones keep their default, so that a
// later version of elasticrun goes on from an older one's save.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace elasticrun::wire::saved {

// One file of a save.
struct File {
  std::string name;  // in the folder of the save
  std::uint64_t bytes = 0;
  std::string hash;  // of its bytes: XXH3 with 64 bits, 16 hexadecimal digits
};

// One save as a whole; written last, by the controller.
struct Manifest {
  std::int32_t version = 0;        // of this format
  std::int64_t step = 0;           // the state is that after this many committed steps
  std::int64_t call = 0;           // of train, from 1
  std::int64_t epoch = 0;          // of that call, from 0
  std::int64_t cursor = 0;         // number of samples of that epoch that are used
  std::int64_t samples = 0;        // in one epoch; 0: the program has a loop of its own
  std::uint64_t state_bytes = 0;   // registered; those of a state source are not counted
  std::uint64_t state_layout = 0;  // hash of the registered names, types and sizes
  std::string job;                 // id of the job that has written it
  std::vector<std::string> argv;   // of its program
  std::string written;             // when: UTC, ISO 8601
  std::vector<File> files;         // `contents`, then the parts of the state in their order
};

// A save that is whole, and where it is.
struct Save {
  std::string path;  // its folder
  Manifest manifest;
};

// One registered array, in the order of registration; or one of a state source's.
struct Array {
  std::string kind;  // state, buffers or source
  std::string name;
  std::string type;  // of buffers: float32 or float64; of state, which is bytes: empty
  std::uint64_t bytes = 0;
};

// The file `contents`: all of the state that is not the program's own, and how to read the rest.
struct Contents {
  std::string progress;       // as it travels to newcomers
  std::vector<Array> arrays;  // as they follow each other in the parts
  std::string objects;        // of the state source: hexadecimal digits
};

BOOST_DESCRIBE_STRUCT(File, (), (name, bytes, hash))
BOOST_DESCRIBE_STRUCT(Manifest, (),
                      (version, step, call, epoch, cursor, samples, state_bytes, state_layout, job,
                       argv, written, files))
BOOST_DESCRIBE_STRUCT(Array, (), (kind, name, type, bytes))
BOOST_DESCRIBE_STRUCT(Contents, (), (progress, arrays, objects))

}  // namespace elasticrun::wire::saved
