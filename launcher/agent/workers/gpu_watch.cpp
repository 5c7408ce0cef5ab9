// See gpu_watch.hpp. The log is looked at first: its Xid says more than a GPU that does not answer.
#include "launcher/agent/workers/gpu_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <string_view>
#include <utility>

namespace elasticrun::launcher::agent::workers {
namespace {

constexpr Duration interval = std::chrono::seconds(1);
constexpr int reads_max = 4096;  // most reads of the log in one look

}  // namespace

GpuWatch::GpuWatch(boost::asio::io_context& io, std::vector<machine::Gpu> gpus,
                   std::function<void(const wire::agent::GpuLost&)> lost)
    : timer_(io), gpus_(std::move(gpus)), lost_(std::move(lost)) {
  if (gpus_.empty()) return;
  // What the log said before we came does not matter any more.
  log_ = net::Fd(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (log_.get() >= 0) ::lseek(log_.get(), 0, SEEK_END);
  look_again_later();
}

void GpuWatch::look_again_later() {
  timer_.expires_after(std::chrono::duration_cast<boost::asio::steady_timer::duration>(interval));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    look();
    look_again_later();
  });
}

void GpuWatch::look() {
  if (gpus_.empty()) return;
  for (const machine::Xid& xid : news_of_the_log())
    if (const auto what = machine::loss(xid))
      for (std::size_t slot = 0; slot < gpus_.size(); ++slot)
        if (machine::is_of(xid, gpus_[slot].location)) lose(slot, xid.number, *what);
  for (std::size_t slot = 0; slot < gpus_.size(); ++slot)
    if (!machine::answers(gpus_[slot]))
      lose(slot, 0, "does not answer on its bus; reboot the host, and look into its kernel's log");
}

// Each read returns one record; EPIPE comes once after records were overwritten before we read
// them.
std::vector<machine::Xid> GpuWatch::news_of_the_log() {
  std::vector<machine::Xid> news;
  std::array<char, 8192> record;
  for (int reads = 0; log_.get() >= 0 && reads < reads_max; ++reads) {
    const ssize_t n = ::read(log_.get(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    for (std::string_view lines(record.data(), static_cast<std::size_t>(n)); !lines.empty();) {
      const auto end = lines.find('\n');
      if (auto xid = machine::parse_xid(lines.substr(0, end))) news.push_back(std::move(*xid));
      lines.remove_prefix(end == lines.npos ? lines.size() : end + 1);
    }
  }
  return news;
}

void GpuWatch::lose(std::size_t slot, std::int32_t xid, const std::string& reason) {
  const machine::Gpu gpu = std::exchange(gpus_[slot], machine::Gpu{});
  lost_(wire::agent::GpuLost{static_cast<std::int32_t>(slot),
                             fmt::format("{} ({})", gpu.name, gpu.location), xid, reason});
}

}  // namespace elasticrun::launcher::agent::workers
