// See fault.hpp.
#include "simulate/faults/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace elasticrun::simulate::faults {
namespace {

struct KindRow {
  FaultKind kind;
  std::string_view name;
  int weight;           // relative frequency; 0: a request by users, drawn separately
  int newcomer_weight;  // relative frequency where only newcomers are struck
};
constexpr KindRow kinds[] = {
    {FaultKind::kill, "kill", 20, 20},
    {FaultKind::fail, "fail", 6, 6},
    {FaultKind::exit_zero, "exit_zero", 2, 0},
    {FaultKind::hang, "hang", 10, 20},
    {FaultKind::slow, "slow", 5, 0},
    {FaultKind::freeze, "freeze", 7, 10},
    {FaultKind::lose_gpu, "lose_gpu", 8, 0},
    {FaultKind::spoil, "spoil", 10, 40},
    {FaultKind::cut, "cut", 10, 0},
    {FaultKind::reset, "reset", 8, 0},
    {FaultKind::reset_all, "reset_all", 6, 0},
    {FaultKind::freeze_agent, "freeze_agent", 6, 0},
    {FaultKind::freeze_host, "freeze_host", 6, 0},
    {FaultKind::kill_agent, "kill_agent", 6, 0},
    {FaultKind::power, "power", 4, 0},
    {FaultKind::notice, "notice", 6, 0},
    {FaultKind::join, "join", 4, 10},
    {FaultKind::link_drops, "link_drops", 5, 0},
    {FaultKind::link_small, "link_small", 5, 0},
    {FaultKind::link_one_way, "link_one_way", 4, 0},
    {FaultKind::stand_still, "stand_still", 4, 0},
    {FaultKind::scale, "scale", 0, 0},
    {FaultKind::edit, "edit", 0, 0},
    {FaultKind::leave, "leave", 0, 0},
    {FaultKind::shrink_and_cut, "shrink_and_cut", 0, 0},
};

constexpr std::string_view points[] = {"now",   "compute",  "reduce", "apply",
                                       "epoch", "transfer", "forming"};
constexpr std::string_view whos[] = {"anybody", "member", "newcomer", "first_rank"};

const KindRow& row(FaultKind kind) { return *std::ranges::find(kinds, kind, &KindRow::kind); }

class Drawing {
 public:
  Drawing(const FaultChoice& choice, Rng& rng) : choice_(choice), rng_(rng) {}

  Fault one(Duration at) {
    fault_ = {.at = at,
              .host = between(1, choice_.hosts),
              .slot = between(0, choice_.slots_per_host - 1)};
    if (choice_.people && rng_.chance(0.4))
      person();
    else
      accident();
    return fault_;
  }

  // A user asks for a change that brings newcomers, and one of them is struck while it starts.
  void of_newcomers(Duration at, std::vector<Fault>& faults) {
    one(at);
    person();
    faults.push_back(fault_);
    one(at + time(5, 60));
    accident();
    faults.push_back(fault_);
  }

 private:
  int between(int low, int high) {
    return low + static_cast<int>(rng_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  Duration time(int low_ms, int high_ms) {
    return std::chrono::microseconds(between(low_ms * 1000, high_ms * 1000));
  }
  int slots() const { return choice_.hosts * choice_.slots_per_host; }

  void person() {
    const bool newcomers = choice_.only_newcomers;
    const int what = between(0, 99);
    if (what < 10 && !newcomers) {
      fault_.kind = FaultKind::shrink_and_cut;
      fault_.number = rng_.chance(0.4) ? 2 : between(0, 1);
      fault_.time = time(200, 900);
    } else if (what < 55) {
      fault_.kind = FaultKind::scale;
      fault_.number = between(1, slots());
    } else if (what < 92 || newcomers) {
      fault_.kind = FaultKind::edit;
      for (int slot = 0; slot < slots(); ++slot) fault_.number |= rng_.chance(0.7) ? 1 << slot : 0;
      if (fault_.number == 0) fault_.number = (1 << slots()) - 1;
    } else {
      fault_.kind = FaultKind::leave;
    }
  }

  void accident() {
    const auto weight = [&](const KindRow& one) {
      return choice_.only_newcomers ? one.newcomer_weight : one.weight;
    };
    int all = 0;
    for (const KindRow& one : kinds) all += weight(one);
    int at = between(0, all - 1);
    const KindRow* chosen = kinds;
    while (at >= weight(*chosen)) at -= weight(*chosen++);
    fault_.kind = chosen->kind;
    details();
  }

  void details() {
    if (choice_.only_newcomers || fault_.kind == FaultKind::spoil) fault_.who = Who::newcomer;
    if (fault_.who == Who::anybody && rng_.chance(0.2)) fault_.who = Who::first_rank;
    switch (fault_.kind) {
      case FaultKind::kill:
      case FaultKind::hang:
        if (fault_.kind == FaultKind::hang || rng_.chance(0.5))
          fault_.in = static_cast<Point>(between(1, std::ssize(points) - 1));
        // A worker is a newcomer only until it steps, so only earlier points are possible.
        if (choice_.only_newcomers && fault_.in != Point::forming) fault_.in = Point::transfer;
        break;
      case FaultKind::slow:
        fault_.number = between(2, 5);
        break;
      case FaultKind::spoil:
        fault_.number = rng_.chance(choice_.only_newcomers ? 0.8 : 0.4) ? always : between(1, 2);
        break;
      case FaultKind::reset:
      case FaultKind::reset_all:
        fault_.time = rng_.chance(0.1) ? time(50, 600) : time(0, 50);
        break;
      case FaultKind::link_drops:
      case FaultKind::link_small:
      case FaultKind::link_one_way:
        fault_.number =
            1 + (fault_.host + between(0, std::max(choice_.hosts - 2, 0))) % choice_.hosts;
        fault_.time = time(20, 3000);
        break;
      case FaultKind::stand_still:
        fault_.time = time(5, 400);
        break;
      default:
        fault_.time = time(5, 900);
    }
  }

  static constexpr int always = 1'000'000;
  const FaultChoice& choice_;
  Rng& rng_;
  Fault fault_;
};

template <class Names>
Result<int> find(const Names& names, const std::string& word) {
  const auto found = std::ranges::find(names, word);
  if (found == std::end(names)) return Error{fmt::format("'{}' is not known here", word)};
  return static_cast<int>(found - std::begin(names));
}

Result<int> number(const std::string& word) {
  int value = 0;
  const auto end = word.data() + word.size();
  if (std::from_chars(word.data(), end, value).ptr != end)
    return Error{fmt::format("'{}' is no number", word)};
  return value;
}

Result<void> set(Fault& fault, const std::string& name, const std::string& value) {
  const auto keep = [](auto& where, const auto& read) -> Result<void> {
    if (!read) return read.error();
    where = static_cast<std::remove_reference_t<decltype(where)>>(*read);
    return {};
  };
  if (name == "host") return keep(fault.host, number(value));
  if (name == "slot") return keep(fault.slot, number(value));
  if (name == "number") return keep(fault.number, number(value));
  if (name == "who") return keep(fault.who, find(whos, value));
  if (name == "in") return keep(fault.in, find(points, value));
  if (name == "for") return keep(fault.time, parse_duration(value));
  return Error{fmt::format("a fault has no '{}'", name)};
}

}  // namespace

std::vector<Fault> draw_faults(const FaultChoice& choice, Rng& rng) {
  std::vector<Fault> faults;
  Drawing drawing(choice, rng);
  const auto mean = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(choice.every).count());
  Duration at = choice.first;
  for (;;) {
    at += std::chrono::microseconds(rng.below(2 * mean));
    if (at > choice.until) return faults;
    if (choice.only_newcomers) {
      drawing.of_newcomers(at, faults);
      continue;
    }
    // Sometimes several faults come at the same time.
    const int together = rng.chance(0.2) ? 2 + static_cast<int>(rng.below(2)) : 1;
    for (int i = 0; i < together; ++i) {
      faults.push_back(drawing.one(at));
      if (choice.only_leavers) faults.back().kind = FaultKind::leave;
    }
  }
}

std::string fault_text(const Fault& fault) {
  const Fault plain;
  std::string text =
      fmt::format("{}ms {} host={}", milliseconds(fault.at), row(fault.kind).name, fault.host);
  text += fmt::format(" slot={}", fault.slot);
  if (fault.who != plain.who) text += fmt::format(" who={}", whos[static_cast<int>(fault.who)]);
  if (fault.in != plain.in) text += fmt::format(" in={}", points[static_cast<int>(fault.in)]);
  if (fault.number != plain.number) text += fmt::format(" number={}", fault.number);
  if (fault.time != plain.time) text += fmt::format(" for={}ms", milliseconds(fault.time));
  return text;
}

Result<Fault> parse_fault(const std::string& line) {
  std::istringstream words(line);
  std::string at, kind, word;
  words >> at >> kind;
  Fault fault;
  const auto when = parse_duration(at);
  if (!when) return when.error();
  fault.at = *when;
  const auto known = std::ranges::find(kinds, kind, &KindRow::name);
  if (known == std::end(kinds)) return Error{fmt::format("'{}' is no kind of fault", kind)};
  fault.kind = known->kind;
  while (words >> word) {
    const auto equals = std::min(word.find('='), word.size() - 1);
    if (const auto done = set(fault, word.substr(0, equals), word.substr(equals + 1)); !done)
      return done.error();
  }
  return fault;
}

}  // namespace elasticrun::simulate::faults
