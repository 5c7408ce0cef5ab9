// See gpus.hpp.
#include "launcher/machine/gpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/numbers.hpp"

namespace elasticrun::launcher::machine {
namespace {

// The value in a line "Key:   value"; empty where there is no such line.
std::string_view value_of(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == text.npos) return {};
  std::string_view value = text.substr(at + key.size());
  value = value.substr(0, value.find('\n'));
  const auto begin = value.find_first_not_of(" \t");
  return begin == value.npos ? std::string_view() : value.substr(begin);
}

// The numbers of nvidia0, nvidia1, ...
std::set<std::int64_t> minors(const std::vector<std::string>& device_names) {
  constexpr std::string_view prefix = "nvidia";
  std::set<std::int64_t> found;
  for (const std::string_view name : device_names)
    if (name.starts_with(prefix))
      if (const auto minor = whole_number(name.substr(prefix.size())); minor >= 0)
        found.insert(*minor);
  return found;
}

// False also for a GPU that has not been used since its driver was loaded: the driver then shows
// question marks instead of a UUID.
bool has_uuid(const Gpu& gpu) {
  return gpu.name.starts_with("GPU-") && gpu.name.find('?') == gpu.name.npos;
}

// All GPUs, by bus location. If the driver's files describe any GPU, they describe all of them; a
// device node without such a file is then a leftover.
std::vector<Gpu> all_gpus(const std::vector<std::string>& device_names,
                          const std::vector<std::string>& informations) {
  const std::set<std::int64_t> nodes = minors(device_names);
  std::map<std::string, std::string> uuids;  // by location
  bool told = false;
  for (const std::string_view text : informations) {
    const auto minor = whole_number(value_of(text, "Device Minor:"));
    told = told || minor;
    if (!minor || !nodes.contains(*minor) || value_of(text, "GPU Excluded:") == "Yes") continue;
    uuids.emplace(value_of(text, "Bus Location:"), value_of(text, "GPU UUID:"));
  }
  std::vector<Gpu> gpus;
  for (const auto& [location, uuid] : uuids) gpus.push_back({uuid, location});
  if (!told) gpus.resize(nodes.size());
  if (!std::ranges::all_of(gpus, has_uuid))
    for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].name = fmt::format("{}", i);
  return gpus;
}

// The GPU that an entry of CUDA_VISIBLE_DEVICES means; null when we know no such GPU. A UUID may be
// abbreviated.
const Gpu* meant(const std::vector<Gpu>& gpus, std::string_view entry) {
  if (const auto number = whole_number(entry))
    return *number >= 0 && *number < std::ssize(gpus) ? &gpus[static_cast<std::size_t>(*number)]
                                                      : nullptr;
  const auto found = std::ranges::find_if(
      gpus, [&](const Gpu& gpu) { return has_uuid(gpu) && gpu.name.starts_with(entry); });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Gpu> find_gpus(const std::vector<std::string>& device_names,
                           const std::vector<std::string>& informations, const char* visible) {
  std::vector<Gpu> gpus = all_gpus(device_names, informations);
  if (!visible) return gpus;
  if (gpus.empty()) return {};
  std::vector<Gpu> listed;
  // CUDA stops at the first entry that is not valid: -1 hides all that follow.
  for (std::string_view list = visible; !list.empty();) {
    const auto comma = list.find(',');
    const std::string_view entry = list.substr(0, comma);
    const Gpu* const gpu = meant(gpus, entry);
    // A MIG instance, or a UUID where we know none, is accepted without a check.
    const bool word =
        entry.starts_with("MIG-") || (entry.starts_with("GPU-") && !has_uuid(gpus[0]));
    if (entry.empty() || (!gpu && !word)) break;
    listed.push_back({std::string(entry), gpu ? gpu->location : ""});
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return listed;
}

std::optional<std::string> visible_gpus(const hosts::Place& place,
                                        std::span<const std::string> gpus, bool own_alone) {
  if (gpus.empty()) return std::nullopt;
  const auto name = [&](std::int32_t slot) {
    return slot < std::ssize(gpus) ? gpus[static_cast<std::size_t>(slot)] : std::string();
  };
  if (own_alone) return name(place.slot);
  const std::vector<std::int32_t>& used = *place.host_slots;
  std::vector<std::string> list;
  const auto add = [&](std::int32_t slot) {
    if (!name(slot).empty()) list.push_back(name(slot));
  };
  for (const std::int32_t slot : used) add(slot);
  for (std::int32_t slot = 0; slot < std::ssize(gpus); ++slot)
    if (!std::ranges::binary_search(used, slot)) add(slot);
  return fmt::format("{}", fmt::join(list, ","));
}

}  // namespace elasticrun::launcher::machine
