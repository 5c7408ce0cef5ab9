// What this process computed and committed, for a checker to prove that no image was used twice or
// left out (tests/integration/lineage.py).
//
// FILE.<host>.<pid> has lines of fields with one space between:
//     computed STEP GENERATION EPOCH RANK SIZE GLOBAL_BATCH INDEX...   this call of compute, before
//     reduction applied  STEP GENERATION EPOCH RANK SIZE GLOBAL_BATCH INDEX...   the whole share;
//     the step is committed finished STEP GENERATION HASH                                    steps
//     committed, of the weights
// Both are needed: a worker that dies between its reduction and its commit has no line "applied",
// but the others have committed what it computed. A step that was repeated appears again with a
// higher generation: the highest that was applied by anybody counts. Every line is written out at
// once.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "elasticrun/elasticrun.hpp"

namespace fashion {

class Record {
 public:
  // Records nothing when the prefix is empty; throws when the file cannot be made, or is there.
  explicit Record(const std::string& prefix);

  void computed(const elasticrun::World& world, const elasticrun::Step& step) const;
  void applied(const elasticrun::World& world, const elasticrun::Step& step);
  // At the end of training; rank 0 also writes the bytes of the weights to FILE.weights.
  void finished(const elasticrun::World& world, std::span<const std::byte> weights) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void line(const char* what, const elasticrun::World&, const elasticrun::Step&) const;

  std::string prefix_;
  std::unique_ptr<std::FILE, Close> file_;
  long long committed_ = 0;
};

// Writes beside the file and renames: a reader sees the old bytes or the new ones, whole.
void write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace fashion
