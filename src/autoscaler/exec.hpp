// The policy of somebody else's program: it is asked, what it answers is done.
//
// It assumes nothing and knows no formula: the program sees what every policy sees, and is free to
// look at anything else (prices of the hour, the queue of a cluster). Here is only the order of
// question and answer: one question at a time, a pause between two, advice that counts for the
// size and the choice of sizes that was asked about and no other. Who runs the program, and how
// question and answer are written, is not known here: a question is a value that comes out, an
// answer one that comes in, whenever it comes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Exec final : public Policy {
 public:
  // "exec:./policy.sh": "./policy.sh"; none for another policy.
  static std::optional<std::string_view> program_of(std::string_view policy);

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "exec"; }
  std::optional<Question> question() override;
  Result<void> advised(Result<Advice> answer) override;

 private:
  // What an answer is about: it counts for nothing else.
  struct Subject {
    int size = 0;
    std::vector<int> sizes;
    bool operator==(const Subject&) const = default;
  };

  std::optional<Question> question_;  // to be put
  std::optional<Subject> asked_;      // about this; no answer yet
  Time next_ = Time::min();           // the earliest moment of the next question
  std::optional<Subject> subject_;    // of the last answer
  std::optional<Advice> advice_;      // none: it was no use
};

}  // namespace elasticrun::autoscaler
