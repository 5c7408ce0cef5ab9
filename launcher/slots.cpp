// How many GPUs count as slots (pure).
//
// The device nodes tell it: nvidia0, nvidia1, ... NVML would know more, but loading it takes a
// tenth of a second, which every start would pay.
#include <algorithm>

#include "launcher/machine.hpp"
#include "launcher/numbers.hpp"

namespace elasticrun::launcher {

int count_gpus(const std::vector<std::string>& device_names, const char* visible) {
  constexpr std::string_view prefix = "nvidia";
  const auto present = std::ranges::count_if(device_names, [&](std::string_view name) {
    return name.starts_with(prefix) && whole_number(name.substr(prefix.size())).value_or(-1) >= 0;
  });
  if (!visible) return static_cast<int>(present);
  std::string_view list = visible;
  int named = 0;
  // CUDA reads up to the first entry that is not valid: -1 hides all that follow.
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == "-1") break;
    ++named;
    if (comma == list.npos) break;
    list.remove_prefix(comma + 1);
  }
  return std::min(named, static_cast<int>(present));
}

}  // namespace elasticrun::launcher
