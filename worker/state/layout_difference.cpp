// See layout_difference.hpp.
#include "worker/state/layout_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace elasticrun::worker::state {

std::string layout_difference(collective::Group& group, const Layout& own, int lead) {
  std::vector<std::uint64_t> hashes = hashes_of(own);
  const std::vector<std::uint64_t> mine = hashes;
  std::uint64_t count = hashes.size();
  group.broadcast(&count, sizeof count, lead);
  hashes.resize(count);
  group.broadcast(hashes.data(), count * sizeof hashes[0], lead);

  // By rank: the place of its first difference, from 1; 0: none.
  std::vector<double> places(static_cast<std::size_t>(group.size()));
  const auto differs = std::ranges::mismatch(mine, hashes);
  if (differs.in1 != mine.end() || differs.in2 != hashes.end())
    places[static_cast<std::size_t>(group.rank())] =
        static_cast<double>(differs.in1 - mine.begin() + 1);
  group.all_reduce(places.data(), collective::DataType::float64, places.size());
  const auto first = std::ranges::find_if(places, [](double place) { return place > 0; });
  if (first == places.end()) return "the workers run different versions of the library";
  const int rank = static_cast<int>(first - places.begin());
  const auto place = static_cast<std::size_t>(*first);
  std::array<std::array<char, registration_words_max>, 2> words{};
  for (const int speaker : {rank, lead}) {
    auto& said = words[speaker == lead ? 1 : 0];
    words_for(own, place - 1).copy(said.data(), said.size() - 1);
    group.broadcast(said.data(), said.size(), speaker);
  }
  // The program ends now, but on no rank before all ranks have the text.
  try {
    group.barrier();
  } catch (const collective::GroupBroken&) {
  }
  return fmt::format("registration {} is {} on rank {} and {} on rank {}", place, words[0].data(),
                     rank, words[1].data(), lead);
}

}  // namespace elasticrun::worker::state
