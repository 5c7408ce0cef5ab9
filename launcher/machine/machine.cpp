// Asks the kernel about this machine.
#include "launcher/machine/machine.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

namespace elasticrun::launcher::machine {
namespace {

// The host name, its first label, and the address of every interface.
std::vector<std::string> own_names() {
  std::vector<std::string> names;
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, HOST_NAME_MAX) == 0 && name[0] != '\0') {
    names.emplace_back(name);
    const auto dot = names.front().find('.');
    if (dot != std::string::npos) names.push_back(names.front().substr(0, dot));
  }
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* one = first; one; one = one->ifa_next) {
    if (!one->ifa_addr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const auto length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char text[NI_MAXHOST] = {};
    if (getnameinfo(one->ifa_addr, static_cast<socklen_t>(length), text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      names.emplace_back(text);
  }
  return names;
}

std::string own_user() {
  for (const char* variable : {"USER", "LOGNAME"})
    if (const char* user = std::getenv(variable); user && *user) return user;
  return {};
}

// The paths in a folder; empty when the folder does not exist.
std::vector<std::filesystem::path> entries_of(const std::string& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder, none), end; !none && at != end;
       at.increment(none))
    entries.push_back(at->path());
  return entries;
}

}  // namespace

std::vector<Gpu> own_gpus(const std::string& root) {
  std::vector<std::string> devices;
  for (const auto& entry : entries_of(root + "/dev")) devices.push_back(entry.filename().string());
  std::vector<std::string> informations;
  for (const auto& entry : entries_of(root + "/proc/driver/nvidia/gpus")) {
    std::ifstream file(entry / "information");
    informations.emplace_back(std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>());
  }
  return find_gpus(devices, informations, std::getenv("CUDA_VISIBLE_DEVICES"));
}

// The configuration space of each PCI device begins with its vendor id. Where no device answers, a
// read gives all ones.
bool answers(const Gpu& gpu, const std::string& root) {
  if (gpu.location.empty()) return true;
  std::error_code error;
  const bool known =
      std::filesystem::exists(root + "/proc/driver/nvidia/gpus/" + gpu.location, error);
  if (!known && !error) return false;
  std::ifstream file(root + "/sys/bus/pci/devices/" + gpu.location + "/config", std::ios::binary);
  char maker[2] = {};
  return !file.read(maker, sizeof maker) || maker[0] != '\xff' || maker[1] != '\xff';
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  return entries;
}

Machine this_machine() {
  Machine machine;
  machine.own = {own_names(), own_user()};
  std::error_code ignored;
  machine.gpus = static_cast<int>(own_gpus().size());
  machine.cwd = std::filesystem::current_path(ignored).string();
  return machine;
}

}  // namespace elasticrun::launcher::machine
