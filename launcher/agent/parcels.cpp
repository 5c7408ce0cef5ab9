// See parcels.hpp.
#include "launcher/agent/parcels.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "base/error.hpp"
#include "launcher/program_search.hpp"

namespace elasticrun::launcher {
namespace {

namespace asio = boost::asio;

constexpr auto touch_interval = std::chrono::minutes(10);  // well below what counts as unused

void prepend_library_path(std::vector<std::string>& env, const std::string& folder) {
  constexpr std::string_view name = "LD_LIBRARY_PATH";
  const std::string before(value_of(name, env));
  std::erase_if(env, [&](const std::string& entry) {
    return entry.starts_with(name) && entry.substr(name.size(), 1) == "=";
  });
  env.push_back(std::string(name) + "=" + folder + (before.empty() ? "" : ":" + before));
}

}  // namespace

// The thread is the only one that touches `files` once it has begun. It is joined last, with what
// it still has to do.
struct Parcels::Copy {
  explicit Copy(std::unique_ptr<UnfinishedParcel> unfinished) : files(std::move(unfinished)) {}
  ~Copy() {
    disk.stop();  // what is not written yet need not be
    disk.join();
  }

  std::unique_ptr<UnfinishedParcel> files;
  std::vector<wire::StartWorker> waiting;
  std::int64_t taken = 0;  // written
  std::int64_t asked = 0;  // the last number that the controller was told
  bool over = false;       // the last part has come
  asio::thread_pool disk{1};
};

struct Parcels::Timer {
  explicit Timer(asio::io_context& io) : timer(io) {}
  asio::steady_timer timer;
};

Parcels::Parcels(asio::io_context& io, std::string private_directory, Handlers handlers)
    : io_(io), private_directory_(std::move(private_directory)), handlers_(std::move(handlers)) {}

Parcels::~Parcels() = default;

void Parcels::start(const wire::StartWorker& order) {
  if (const auto copy = copies_.find(order.parcel); copy != copies_.end())
    return copy->second->waiting.push_back(order);
  if (!is_content_hash(order.parcel))
    return handlers_.failed(order.worker, exit_code::not_executable, "no parcel has such a name");
  const auto folder =
      find_parcel(parcel_places(private_directory_), order.parcel, order.parcel_bytes);
  if (folder) return start_from(*folder, order);
  begin(order);
}

void Parcels::begin(const wire::StartWorker& order) {
  const auto place = place_for_parcel(parcel_places(private_directory_), order.parcel_bytes);
  if (!place) return handlers_.failed(order.worker, exit_code::not_executable, place.error().text);
  auto files =
      UnfinishedParcel::begin(*place, order.parcel, order.parcel_bytes, private_directory_);
  if (!files) return handlers_.failed(order.worker, exit_code::not_executable, files.error().text);
  used_.try_emplace((*files)->folder());
  auto copy = std::make_unique<Copy>(std::move(*files));
  copy->waiting.push_back(order);
  copies_[order.parcel] = std::move(copy);
  handlers_.ask({order.parcel, 0});
  if (!timer_) keep_fresh();
}

// A copy that nobody waits for any more still comes to its end: the next job has use for it.
bool Parcels::call_off(WorkerId worker) {
  for (auto& [parcel, copy] : copies_)
    if (std::erase_if(copy->waiting, [&](const auto& order) { return order.worker == worker; }))
      return true;
  return false;
}

void Parcels::take(const wire::ParcelPart& part) {
  const auto found = copies_.find(part.parcel);
  if (found == copies_.end() || found->second->over) return;
  if (!part.trouble.empty()) return failed(part.parcel, part.trouble);
  Copy& copy = *found->second;
  copy.over = part.last;
  asio::post(copy.disk, [this, &io = io_, files = copy.files.get(), part] {
    const std::string& parcel = part.parcel;
    const auto fail = [&](const Error& error) {
      asio::post(io, [this, parcel, text = error.text] { failed(parcel, text); });
    };
    if (const auto taken = files->take(part); !taken) return fail(taken.error());
    const auto bytes = static_cast<std::int64_t>(part.bytes.size());
    if (!part.last) return asio::post(io, [this, parcel, bytes] { written(parcel, bytes); });
    if (const auto finished = files->finish(); !finished) return fail(finished.error());
    forget_old_parcels(files->stored_in());
    asio::post(io, [this, parcel] { stored(parcel); });
  });
}

void Parcels::written(const std::string& parcel, std::int64_t bytes) {
  const auto found = copies_.find(parcel);
  if (found == copies_.end()) return;
  Copy& copy = *found->second;
  copy.taken += bytes;
  if (copy.over || copy.taken < copy.asked + parcel_ask_bytes) return;
  copy.asked = copy.taken;
  handlers_.ask({parcel, copy.taken});
}

void Parcels::stored(const std::string& parcel) {
  const auto node = copies_.extract(parcel);
  if (node.empty()) return;
  used_.erase(node.mapped()->files->folder());
  const std::string folder = node.mapped()->files->stored_in();
  for (const wire::StartWorker& order : node.mapped()->waiting) start_from(folder, order);
}

void Parcels::failed(const std::string& parcel, const std::string& reason) {
  const auto node = copies_.extract(parcel);
  if (node.empty()) return;
  used_.erase(node.mapped()->files->folder());
  for (const wire::StartWorker& order : node.mapped()->waiting)
    handlers_.failed(order.worker, exit_code::not_executable, reason);
}

void Parcels::start_from(const std::string& folder, wire::StartWorker order) {
  used_.insert_or_assign(folder, hold_parcel(folder));
  if (!timer_) keep_fresh();
  if (has_libraries(folder)) prepend_library_path(order.env, folder);
  handlers_.start(order, folder + "/" + parcel_file_of(order.argv[0]));
}

void Parcels::keep_fresh() {
  if (!timer_) timer_ = std::make_unique<Timer>(io_);
  timer_->timer.expires_after(touch_interval);
  timer_->timer.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [folder, held] : used_) touch_parcel(folder);
    keep_fresh();
  });
}

}  // namespace elasticrun::launcher
