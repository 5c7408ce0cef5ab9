// The policy that asks a program of the user's and follows the answer.
//
// It assumes nothing and knows no formula: the program sees what every policy sees, and is free to
// look at anything else (current prices, the queue of a cluster). This class only keeps the order
// of questions and answers: one question at a time, a pause between questions, and advice that
// counts only for the size and the list of sizes it was asked about. Running the program and
// encoding questions and answers is done elsewhere: here a question is a value that the caller
// fetches, and an answer is a value that the caller passes in at any later time.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "autoscaler/policy.hpp"

namespace elasticrun::autoscaler {

class Exec final : public Policy {
 public:
  // "./policy.sh" for "exec:./policy.sh"; nothing for another policy.
  static std::optional<std::string_view> program_of(std::string_view policy);

  Decision decide(const Snapshot& snapshot, const Limits& limits, Time now) override;
  std::string_view name() const override { return "exec"; }
  std::optional<Question> question() override;
  Result<void> advised(Result<Advice> answer) override;

 private:
  // The situation that an answer is about; the answer is not used in any other.
  struct Subject {
    int size = 0;
    std::vector<int> sizes;
    bool operator==(const Subject&) const = default;
  };

  std::optional<Question> question_;  // the question that question() returns next
  std::optional<Subject> asked_;      // the subject of the question that awaits its answer
  Time next_ = Time::min();           // the earliest time for the next question
  std::optional<Subject> subject_;    // the subject of the last answer
  std::optional<Advice> advice_;      // the last answer; none: it could not be used
};

}  // namespace elasticrun::autoscaler
