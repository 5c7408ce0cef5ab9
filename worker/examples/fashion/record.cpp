// The record as text: one write for each line, so that a killed process leaves whole lines.
#include "record.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fashion {
namespace {

// FNV-1a, 64 bits.
std::uint64_t hash(std::span<const std::byte> bytes) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes)
    h = (h ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return h;
}

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

Record::Record(const std::string& prefix) : prefix_(prefix) {
  if (prefix.empty()) return;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string path = prefix + "." + host + "." + std::to_string(getpid());
  file_.reset(std::fopen(path.c_str(), "wx"));
  if (!file_) fail(path);
}

void Record::computed(const elasticrun::World& world, const elasticrun::Step& step) const {
  line("computed", world, step);
}

void Record::applied(const elasticrun::World& world, const elasticrun::Step& step) {
  line("applied", world, step);
  committed_ = step.number() + 1;
}

void Record::line(const char* what, const elasticrun::World& world,
                  const elasticrun::Step& step) const {
  if (!file_) return;
  std::string text = what;
  const auto field = [&text](auto number) { text += " " + std::to_string(number); };
  field(step.number());
  field(world.generation());
  field(step.epoch());
  field(world.rank());
  field(world.size());
  field(step.global_batch());
  for (const std::uint64_t sample : step.samples()) field(sample);
  std::fprintf(file_.get(), "%s\n", text.c_str());
  std::fflush(file_.get());
}

void Record::finished(const elasticrun::World& world, std::span<const std::byte> weights) const {
  if (!file_) return;
  std::fprintf(file_.get(), "finished %lld %llu %016llx\n", committed_,
               static_cast<unsigned long long>(world.generation()),
               static_cast<unsigned long long>(hash(weights)));
  std::fflush(file_.get());
  if (world.rank() == 0) write_file(prefix_ + ".weights", weights);
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::string beside = path + ".new";
  const auto close = [](std::FILE* f) { return std::fclose(f); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(beside.c_str(), "wb"), close);
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fclose(file.release()) != 0 || std::rename(beside.c_str(), path.c_str()) != 0)
    fail(path);
}

}  // namespace fashion
