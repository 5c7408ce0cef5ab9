// The C interface: a state source, whose functions are the program's.
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "worker/api/job.hpp"
#include "worker/training/program_call.hpp"

namespace worker = elasticrun::worker;
namespace state = elasticrun::worker::state;
using elasticrun::Error;
using elasticrun::Result;
using elasticrun::worker::training::call_program;
using namespace worker::api;

struct elasticrun_listing {
  state::Listing content;
};

namespace {

// What is open while a function of the program runs: it must not call into the job.
class Calling {
 public:
  explicit Calling(bool& busy) : busy_(busy), before_(std::exchange(busy, true)) {}
  ~Calling() { busy_ = before_; }
  Calling(const Calling&) = delete;

 private:
  bool& busy_;
  const bool before_;
};

Result<void> outcome(const char* what, int code) {
  if (code == 0) return {};
  return Error{fmt::format("{} of the state source returned {}; this worker is out of the world",
                           what, code)};
}

Result<void> check(const state::Listing& listing) {
  if (listing.objects.size() > state::Source::objects_bytes_max)
    return Error{fmt::format("the state source has {} bytes of objects; at most {} are taken",
                             listing.objects.size(), state::Source::objects_bytes_max)};
  for (const state::Array& array : listing.arrays)
    if (array.name.empty() || (!array.data && array.bytes > 0))
      return Error{fmt::format("the state source lists an array '{}' without {}", array.name,
                               array.name.empty() ? "a name" : "memory (null)")};
  return {};
}

state::Source source_of(elasticrun_job& job, const elasticrun_source& given) {
  state::Source source;
  source.list = [&job, given]() -> Result<state::Listing> {
    const Calling calling(job.busy);
    elasticrun_listing listing;
    const int code = call_program([&] { return given.list(&listing, given.user); });
    if (auto done = outcome("list", code); !done) return done.error();
    if (auto good = check(listing.content); !good) return good.error();
    return std::move(listing.content);
  };
  source.make_room = [&job, given](const state::Layout& wanted) -> Result<void> {
    const Calling calling(job.busy);
    std::vector<elasticrun_array> arrays;
    for (const state::Registration& one : wanted)
      arrays.push_back({one.name.c_str(), nullptr, one.bytes});
    return outcome("make_room", call_program([&] {
                     return given.make_room(arrays.data(), arrays.size(), given.user);
                   }));
  };
  source.take_objects = [&job, given](std::string_view objects) -> Result<void> {
    if (!given.take_objects) return {};
    const Calling calling(job.busy);
    return outcome("take_objects", call_program([&] {
                     return given.take_objects(objects.data(), objects.size(), given.user);
                   }));
  };
  return source;
}

void use_source(elasticrun_job& job, const elasticrun_source* source) {
  if (!source) return job.table.use_source(std::nullopt);
  elasticrun_source given{};
  constexpr std::size_t least = offsetof(elasticrun_source, user) + sizeof given.user;
  if (source->struct_size < least)
    misuse(fmt::format("state_source: struct_size is {}; set it to sizeof(elasticrun_source)",
                       source->struct_size));
  std::memcpy(&given, source, std::min(source->struct_size, sizeof given));
  if (!given.list || !given.make_room) misuse("state_source: list or make_room is missing (null)");
  job.table.use_source(source_of(job, given));
}

}  // namespace

extern "C" {

elasticrun_status elasticrun_state_source(elasticrun_job* job, const elasticrun_source* source) {
  return guarded(job, [&] {
    check_usable(*job, "state_source");
    const bool loops = job->loop && !job->loop->finished();
    if ((job->steps && job->steps->in_step()) || (loops && job->loop->in_step()))
      misuse(
          "state_source: a step is under way; call it before or after, or the step may be "
          "repeated from a state that lacks what the source lists");
    if (loops && !job->loop->holds_committed())
      misuse(
          "state_source: registered state has changed since the last commit; call it right after");
    use_source(*job, source);
    if (loops) job->loop->keep_state();
  });
}

elasticrun_status elasticrun_list_array(elasticrun_listing* listing, const char* name, void* data,
                                        size_t bytes) {
  if (!listing || !name) return ELASTICRUN_MISUSE;
  try {
    listing->content.arrays.push_back({name, data, bytes});
    return ELASTICRUN_OK;
  } catch (...) {
    return ELASTICRUN_FAILED;
  }
}

elasticrun_status elasticrun_list_objects(elasticrun_listing* listing, const void* data,
                                          size_t bytes) {
  if (!listing || (!data && bytes > 0)) return ELASTICRUN_MISUSE;
  try {
    listing->content.objects.assign(static_cast<const char*>(data), bytes);
    return ELASTICRUN_OK;
  } catch (...) {
    return ELASTICRUN_FAILED;
  }
}

}  // extern "C"
