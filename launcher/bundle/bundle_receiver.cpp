// See bundle_receiver.hpp.
#include "launcher/bundle/bundle_receiver.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/machine/program_search.hpp"
#include "launcher/machine/python_source.hpp"

namespace elasticrun::launcher::bundle {
namespace {

namespace asio = boost::asio;

constexpr auto touch_interval = std::chrono::minutes(10);  // well below unused_time of the cache

// Puts the folder in front of a list of folders such as PATH.
void prepend(std::vector<std::string>& env, std::string_view name, const std::string& folder) {
  const std::string before(machine::value_of(name, env));
  std::erase_if(env, [&](const std::string& entry) {
    return entry.starts_with(name) && entry.substr(name.size(), 1) == "=";
  });
  env.push_back(std::string(name) + "=" + folder + (before.empty() ? "" : ":" + before));
}

}  // namespace

// A bundle that workers wait for: it is looked for on the disk first, and received if it is not
// there. Only the thread of `disk` reads and writes the bundle's files meanwhile. The destructor
// joins the thread before `files` is destroyed.
struct BundleReceiver::Copy {
  explicit Copy(std::int64_t bundle_bytes) : bytes(bundle_bytes) {}
  ~Copy() {
    disk.stop();  // parts that are still queued need not be written
    disk.join();
  }

  const std::int64_t bytes;
  std::unique_ptr<UnfinishedBundle> files;  // null: the search is still running
  std::vector<wire::agent::StartWorker> waiting;
  std::int64_t come = 0;   // bytes received
  std::int64_t taken = 0;  // bytes written
  std::int64_t asked = 0;  // the last number of bytes reported to the controller
  bool over = false;       // the last part has been received
  asio::thread_pool disk{1};
};

struct BundleReceiver::Timer {
  explicit Timer(asio::io_context& io) : timer(io) {}
  asio::steady_timer timer;
};

BundleReceiver::BundleReceiver(asio::io_context& io, std::string private_directory,
                               Handlers handlers)
    : io_(io), private_directory_(std::move(private_directory)), handlers_(std::move(handlers)) {}

BundleReceiver::~BundleReceiver() = default;

void BundleReceiver::start(const wire::agent::StartWorker& order) {
  if (const auto copy = copies_.find(order.bundle); copy != copies_.end())
    return copy->second->waiting.push_back(order);
  if (!is_content_hash(order.bundle))
    return handlers_.failed(order.worker, exit_code::not_executable, "no bundle has such a name");
  const auto known = whole_.find(order.bundle);
  if (known != whole_.end() && has_size(known->second, order.bundle_bytes))
    return start_from(known->second, order);
  const auto copy = copies_.emplace(order.bundle, std::make_unique<Copy>(order.bundle_bytes)).first;
  copy->second->waiting.push_back(order);
  look_for(order.bundle, *copy->second);
}

// Searches the disk, once for each bundle, however many workers start from it.
void BundleReceiver::look_for(const std::string& bundle, Copy& copy) {
  asio::post(copy.disk, [this, &io = io_, bundle, bytes = copy.bytes,
                         places = bundle_places(private_directory_)] {
    const auto folder = find_bundle(places, bundle, bytes);
    asio::post(io, [this, bundle, folder] {
      if (folder) return stored(bundle, *folder);
      begin(bundle);
    });
  });
}

void BundleReceiver::begin(const std::string& bundle) {
  Copy& copy = *copies_.at(bundle);
  if (copy.waiting.empty()) {
    copies_.erase(bundle);  // all were called off
    return;
  }
  const auto place = place_for_bundle(bundle_places(private_directory_), copy.bytes);
  if (!place) return failed(bundle, place.error().text);
  auto files = UnfinishedBundle::begin(*place, bundle, copy.bytes, private_directory_);
  if (!files) return failed(bundle, files.error().text);
  copy.files = std::move(*files);
  used_.try_emplace(copy.files->folder());
  handlers_.ask({bundle, 0});
  if (!timer_) keep_fresh();
}

// A bundle for which no worker waits any more is still received completely, for the next job.
bool BundleReceiver::call_off(WorkerId worker) {
  for (auto& [bundle, copy] : copies_)
    if (std::erase_if(copy->waiting, [&](const auto& order) { return order.worker == worker; }))
      return true;
  return false;
}

void BundleReceiver::ask_again() {
  for (auto& [bundle, copy] : copies_) {
    if (!copy->files || copy->over) continue;
    copy->asked = copy->come;
    handlers_.ask({bundle, copy->come, true});
  }
}

void BundleReceiver::take(const wire::agent::BundlePart& part) {
  const auto found = copies_.find(part.bundle);
  if (found == copies_.end() || !found->second->files || found->second->over) return;
  if (!part.trouble.empty()) return failed(part.bundle, part.trouble);
  Copy& copy = *found->second;
  copy.over = part.last;
  copy.come += static_cast<std::int64_t>(part.bytes.value.size());
  asio::post(copy.disk, [this, &io = io_, files = copy.files.get(), part] {
    const std::string& bundle = part.bundle;
    const auto fail = [&](const Error& error) {
      asio::post(io, [this, bundle, text = error.text] { failed(bundle, text); });
    };
    if (const auto taken = files->take(part); !taken) return fail(taken.error());
    const auto bytes = static_cast<std::int64_t>(part.bytes.value.size());
    if (!part.last) return asio::post(io, [this, bundle, bytes] { written(bundle, bytes); });
    if (const auto finished = files->finish(); !finished) return fail(finished.error());
    forget_old_bundles(files->stored_in());
    asio::post(io, [this, bundle, folder = files->stored_in()] { stored(bundle, folder); });
  });
}

void BundleReceiver::written(const std::string& bundle, std::int64_t bytes) {
  const auto found = copies_.find(bundle);
  if (found == copies_.end()) return;
  Copy& copy = *found->second;
  copy.taken += bytes;
  if (copy.over || copy.taken < copy.asked + bundle_ask_bytes) return;
  copy.asked = copy.taken;
  handlers_.ask({bundle, copy.taken});
}

void BundleReceiver::stored(const std::string& bundle, const std::string& folder) {
  whole_[bundle] = folder;
  const auto copy = take_out(bundle);
  if (!copy) return;
  for (const wire::agent::StartWorker& order : copy->waiting) start_from(folder, order);
}

void BundleReceiver::failed(const std::string& bundle, const std::string& reason) {
  const auto copy = take_out(bundle);
  if (!copy) return;
  for (const wire::agent::StartWorker& order : copy->waiting)
    handlers_.failed(order.worker, exit_code::not_executable, reason);
}

// Removes the copy from copies_ and used_. Null when it has been removed before.
std::unique_ptr<BundleReceiver::Copy> BundleReceiver::take_out(const std::string& bundle) {
  auto node = copies_.extract(bundle);
  if (node.empty()) return nullptr;
  if (node.mapped()->files) used_.erase(node.mapped()->files->folder());
  return std::move(node.mapped());
}

void BundleReceiver::start_from(const std::string& folder, wire::agent::StartWorker order) {
  used_.insert_or_assign(folder, hold_bundle(folder));
  if (!timer_) keep_fresh();
  const auto copy_of = [&](const std::string& file) { return folder + "/" + bundle_file_of(file); };
  if (const auto source = machine::python_source(order.argv)) {
    if (source->module)
      prepend(order.env, "PYTHONPATH", folder);
    else
      order.argv[source->argument] = copy_of(order.argv[source->argument]);
    return handlers_.start(order, {});
  }
  if (has_libraries(folder)) prepend(order.env, "LD_LIBRARY_PATH", folder);
  handlers_.start(order, copy_of(order.argv[0]));
}

void BundleReceiver::keep_fresh() {
  if (!timer_) timer_ = std::make_unique<Timer>(io_);
  timer_->timer.expires_after(touch_interval);
  timer_->timer.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (const auto& [folder, held] : used_) touch_bundle(folder);
    keep_fresh();
  });
}

}  // namespace elasticrun::launcher::bundle
