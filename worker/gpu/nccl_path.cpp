// See nccl_path.hpp.
#include "worker/gpu/nccl_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "worker/gpu/nccl_library.hpp"

namespace elasticrun::worker::gpu {
namespace {

enum Function { scalable, shrink };

// Taken from nccl.h of each release. In the versions left out an abort can crash the process (known
// issues of in-process restart, NVIDIA Resiliency Extension). From 2.31.2 on a parent that was
// shrunk after a failure hangs in ncclCommDestroy (pytorch/pytorch 194775): every communicator of
// ours ends by ncclCommAbort, in all versions.
//
// Why not ncclCommRevoke, which would keep a communicator whose work is under way, for a shrink: it
// takes as long as an abort, half a second, and after that it takes the order to stop back, whether
// or not the kernels have seen it (commRevokeAsync in its source); on an H200 that six ranks
// shared, a change with it took 26 seconds once.
constexpr std::array<NcclFunction, 2> functions = {{
    {"ncclCommInitRankScalable", 22304, 0, 0, "nccl.h of 2.23.4, not in 2.22.3"},
    {"ncclCommShrink", 22703, 22803, 22808, "nccl.h of 2.27.3, not in 2.26.2"},
}};

bool passes(Function which, int version, bool has) {
  const NcclFunction& function = functions[which];
  const bool broken = version >= function.broken_from && version <= function.broken_to;
  return has && version >= function.since && !broken;
}

constexpr std::array<std::string_view, 3> health_names = {"none", "running", "quiet"};

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find('/');
    fields.push_back(text.substr(0, end));
    if (end == text.npos) return fields;
    text.remove_prefix(end + 1);
  }
}

template <class T>
bool number(std::string_view text, T& value, int base = 10) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && !text.empty();
}

// The versions and their hosts, as "2.28.9 on n1, n2; 2.27.7 on n3"; empty when all are the same.
std::string differences(std::span<const NcclOffer> offers, int NcclOffer::*version,
                        std::string (*text)(int)) {
  std::map<int, std::set<std::string>, std::greater<>> hosts;
  for (const NcclOffer& offer : offers) hosts[offer.*version].insert(offer.host);
  if (hosts.size() < 2) return {};
  std::string said;
  for (const auto& [one, names] : hosts) {
    if (!said.empty()) said += "; ";
    said += fmt::format("{} on {}", text(one), fmt::join(names, ", "));
  }
  return said;
}

std::string doubt_about(std::span<const NcclOffer> offers) {
  const std::string other = differences(offers, &NcclOffer::driver, driver_version_text);
  return other.empty() ? other : "CUDA drivers differ: " + other;
}

// Whether the old communicator can be shrunk to this world; an error says why not.
Result<void> check_shrink(std::span<const NcclOffer> offers, const NcclFeatures& features) {
  if (offers.size() == 1) return Error{"one rank needs no communicator"};
  const NcclOffer& first = offers.front();
  int before = -1;
  for (const NcclOffer& offer : offers) {
    if (offer.parent == ParentHealth::running) return Error{"the old world still trains"};
    if (offer.parent == ParentHealth::none) return Error{"a rank has no communicator to shrink"};
    if (offer.parent_id != first.parent_id) return Error{"the ranks come from different worlds"};
    if (offer.parent_rank <= before) return Error{"the ranks changed their order"};
    before = offer.parent_rank;
  }
  if (static_cast<int>(offers.size()) == first.parent_size) return Error{"no rank went"};
  if (!features.shrink) return Error{"this NCCL cannot shrink"};
  return {};
}

std::vector<int> excluded_of(std::span<const NcclOffer> offers) {
  std::vector<int> excluded;
  std::size_t next = 0;
  for (int rank = 0; rank < offers.front().parent_size; ++rank) {
    if (next < offers.size() && offers[next].parent_rank == rank)
      ++next;
    else
      excluded.push_back(rank);
  }
  return excluded;
}

}  // namespace

std::span<const NcclFunction> nccl_functions() { return functions; }

NcclFeatures nccl_features(int version, const NcclSymbols& has) {
  return {.scalable_init = passes(scalable, version, has.scalable_init),
          .shrink = passes(shrink, version, has.shrink)};
}

std::string to_text(const NcclOffer& offer) {
  // The name of a host may contain any character but the separator.
  std::string host = offer.host;
  std::replace(host.begin(), host.end(), '/', '_');
  return fmt::format("nccl/{}/{}/{}/{}/{:x}/{}/{}/{}", offer.version, offer.driver, host,
                     health_names[static_cast<std::size_t>(offer.parent)], offer.parent_id,
                     offer.parent_rank, offer.parent_size, offer.unique_id);
}

Result<NcclOffer> parse_offer(std::string_view text) {
  const Error wrong{fmt::format("'{:.80}' is no offer of an NCCL group", text)};
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() != 9 || fields[0] != "nccl") return wrong;
  NcclOffer offer;
  const auto health = std::find(health_names.begin(), health_names.end(), fields[4]);
  const bool read = number(fields[1], offer.version) && number(fields[2], offer.driver) &&
                    health != health_names.end() && number(fields[5], offer.parent_id, 16) &&
                    number(fields[6], offer.parent_rank) && number(fields[7], offer.parent_size);
  if (!read) return wrong;
  offer.host = fields[3];
  offer.parent = static_cast<ParentHealth>(health - health_names.begin());
  offer.unique_id = fields[8];
  const bool placed = offer.parent_rank >= 0 && offer.parent_rank < offer.parent_size;
  if (offer.parent != ParentHealth::none && !placed) return wrong;
  return offer;
}

std::string_view name_of(NcclInit init) {
  constexpr std::array<std::string_view, 3> names = {"init", "scalable init", "shrink"};
  return names[static_cast<std::size_t>(init)];
}

bool lends_unique_id(int rank, int size, const NcclFeatures& features) {
  if (size < 2) return false;
  if (size <= ranks_per_unique_id || !features.scalable_init) return rank == 0;
  return rank % ranks_per_unique_id == 0;
}

Result<NcclPath> choose_path(std::span<const NcclOffer> offers, const NcclFeatures& features) {
  if (const auto other = differences(offers, &NcclOffer::version, nccl_version_text);
      !other.empty())
    return Error{fmt::format("NCCL differs: {}; install one version on all hosts", other)};
  const Result<void> can_shrink = check_shrink(offers, features);
  if (can_shrink) {
    std::vector<int> excluded = excluded_of(offers);
    std::string reason = fmt::format("{} of {} ranks went and none came", excluded.size(),
                                     offers.front().parent_size);
    return NcclPath{NcclInit::shrink, std::move(excluded), std::move(reason), doubt_about(offers)};
  }
  const int size = static_cast<int>(offers.size());
  for (int rank = 0; rank < size; ++rank)
    if (lends_unique_id(rank, size, features) &&
        offers[static_cast<std::size_t>(rank)].unique_id.empty())
      return Error{fmt::format("rank {} lent no unique id", rank)};
  const bool several = lends_unique_id(ranks_per_unique_id, size, features);
  return NcclPath{several ? NcclInit::scalable_init : NcclInit::init,
                  {},
                  can_shrink.error().text,
                  doubt_about(offers)};
}

}  // namespace elasticrun::worker::gpu
