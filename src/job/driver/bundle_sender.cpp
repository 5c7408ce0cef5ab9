// See bundle_sender.hpp.
#include "job/driver/bundle_sender.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/exit_code.hpp"
#include "launcher/bundle/bundle_digest.hpp"

namespace elasticrun::job::driver {
namespace {

constexpr std::size_t hosts_at_once = 32;
constexpr std::int64_t window_min = 2 * launcher::bundle::bundle_ask_bytes;
constexpr std::int64_t window_max = std::int64_t{2} << 20;  // 20 MB/s at a round trip of 100 ms
constexpr Duration window_time = std::chrono::milliseconds(500);

}  // namespace

std::optional<launcher::bundle::BundleTrouble> BundleSender::gather() {
  can_be_copied_ =
      launcher::bundle::program_can_be_copied(spec_.argv, spec_.caller_environment, spec_.cwd);
  if (!spec_.ship) return std::nullopt;
  auto gathered = launcher::bundle::gather_bundle(spec_.argv, spec_.caller_environment, spec_.cwd);
  if (auto* trouble = std::get_if<launcher::bundle::BundleTrouble>(&gathered))
    return std::move(*trouble);
  bundle_ = std::make_shared<const launcher::bundle::Bundle>(
      std::move(std::get<launcher::bundle::Bundle>(gathered)));
  files_.emplace(io_);
  return std::nullopt;
}

void BundleSender::announce(wire::agent::StartWorker& order) const {
  order.bundle = bundle_->hash;
  order.bundle_bytes = bundle_->bytes;
}

void BundleSender::asked(HostId host, const wire::agent::BundleWanted& wanted, Time now) {
  now_ = now;
  if (bundle_->hash.empty() || wanted.bundle != bundle_->hash) return;
  const auto found = deliveries_.find(host);
  if (wanted.taken == 0 || wanted.resumes) {
    gone(host);
    if (wanted.taken <= bundle_->bytes)
      waiting_.push_back({host, std::max<std::int64_t>(wanted.taken, 0)});
    return next();
  }
  if (found == deliveries_.end()) return;  // all of the bundle has been sent
  found->second.taken = std::clamp<std::int64_t>(wanted.taken, 0, found->second.sent);
  measure(found->second, now);
  read(host);
}

void BundleSender::measure(Delivery& delivery, Time now) {
  if (delivery.taken < delivery.sent_then) return;
  const double took = std::max(seconds(now - delivery.since), 1e-3);
  const double speed = static_cast<double>(delivery.taken - delivery.taken_then) / took;
  delivery.window =
      std::clamp(static_cast<std::int64_t>(speed * seconds(window_time)), window_min, window_max);
  delivery.since = now;
  delivery.taken_then = delivery.taken;
  delivery.sent_then = delivery.sent;
}

void BundleSender::gone(HostId host) {
  std::erase_if(waiting_, [&](const Request& request) { return request.host == host; });
  if (deliveries_.erase(host) > 0) next();
}

void BundleSender::next() {
  while (!waiting_.empty() && deliveries_.size() < hosts_at_once) {
    const Request request = waiting_.front();
    waiting_.pop_front();
    deliveries_[request.host] = begin(request.from);
    read(request.host);
  }
}

BundleSender::Delivery BundleSender::begin(std::int64_t from) {
  Delivery delivery{.number = ++deliveries_begun_, .window = window_min, .since = now_};
  delivery.sent = delivery.taken = delivery.taken_then = delivery.sent_then = from;
  for (delivery.offset = from; delivery.offset > 0; ++delivery.file) {
    const std::int64_t bytes = bundle_->files[delivery.file].bytes;
    // Stay at the end of the last file: an empty part has to tell the host that it is the last.
    if (delivery.offset < bytes || delivery.file + 1 == bundle_->files.size()) break;
    delivery.offset -= bytes;
  }
  return delivery;
}

// Reads the next part on the file thread, and sends it, if the window has room.
void BundleSender::read(HostId host) {
  Delivery& delivery = deliveries_.at(host);
  if (delivery.reading || delivery.sent >= delivery.taken + delivery.window) return;
  delivery.reading = true;
  files_->run([this, host, bundle = bundle_, index = delivery.file, offset = delivery.offset,
               number = delivery.number] {
    const launcher::bundle::BundleFile& file = bundle->files[index];
    const auto size =
        std::min<std::int64_t>(file.bytes - offset, launcher::bundle::bundle_part_bytes);
    return [this, host, number,
            bytes = launcher::bundle::read_part(file, offset, static_cast<std::size_t>(size))] {
      const auto found = deliveries_.find(host);
      if (found != deliveries_.end() && found->second.number == number) send(host, bytes);
    };
  });
}

void BundleSender::send(HostId host, Result<std::string> bytes) {
  Delivery& delivery = deliveries_.at(host);
  const launcher::bundle::BundleFile& file = bundle_->files[delivery.file];
  wire::agent::BundlePart part{
      .bundle = bundle_->hash, .file = file.name, .executable = file.executable};
  delivery.reading = false;
  if (bytes && bytes->empty() && delivery.offset < file.bytes)
    part.trouble = "'" + file.path + "' has become shorter; start the job again";
  else if (!bytes)
    part.trouble = bytes.error().text;
  else
    part.bytes.value = std::move(*bytes);
  const auto size = static_cast<std::int64_t>(part.bytes.value.size());
  delivery.sent += size;
  delivery.offset += size;
  if (delivery.offset == file.bytes) {
    part.last = ++delivery.file == bundle_->files.size();
    delivery.offset = 0;
  }
  send_(host, part);
  if (part.last || !part.trouble.empty()) return gone(host);
  read(host);
}

void BundleSender::advise(wire::agent::StartFailed& failure) const {
  if (spec_.ship || failure.code != exit_code::not_found || !can_be_copied_) return;
  failure.reason += "; --ship copies it to hosts that lack it";
}

}  // namespace elasticrun::job::driver
