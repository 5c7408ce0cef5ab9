// Which GPUs a host has, and which of them a worker sees.
#include "launcher/machine/gpus.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launcher/machine/machine.hpp"

using namespace elasticrun::launcher::hosts;
using namespace elasticrun;
using namespace elasticrun::launcher::machine;
using Names = std::vector<std::string>;

namespace {

// The text of an information file as the driver writes it.
std::string information(const char* location, int minor, const char* uuid,
                        const char* excluded = "No") {
  return fmt::format(
      "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 10\nGPU UUID: \t {}\n"
      "Video BIOS: \t 96.00.99.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n"
      "DMA Mask: \t 0xfffffffffffff\nBus Location: \t {}\nDevice Minor: \t {}\n"
      "GPU Firmware: \t 535.129.03\nGPU Excluded:\t {}\n",
      uuid, location, minor, excluded);
}

const Names three{"null", "nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia"};
// The driver numbers GPUs in the order in which it found them.
const Names told{information("0000:62:00.0", 0, "GPU-c"), information("0000:1b:00.0", 1, "GPU-a"),
                 information("0000:3b:00.0", 2, "GPU-bb")};
const Names asleep{information("0000:62:00.0", 0, "GPU-c"),
                   information("0000:1b:00.0", 1, R"(GPU-????????-????-????-????-????????????)")};

std::string text(const std::vector<Gpu>& gpus) {
  std::string text;
  for (const Gpu& gpu : gpus) text += fmt::format("{}@{} ", gpu.name, gpu.location);
  return text;
}

}  // namespace

TEST_CASE("GPUs of a host come in the order of its slots") {
  const char* const all = "GPU-a@0000:1b:00.0 GPU-bb@0000:3b:00.0 GPU-c@0000:62:00.0 ";
  struct Case {
    Names devices, informations;
    const char* visible;
    const char* out;
  };
  const Case cases[] = {
      {three, told, nullptr, all},
      {{"null"}, {}, nullptr, ""},
      {{"null"}, told, nullptr, ""},  // a container without GPUs
      {{"nvidia2"}, told, nullptr, "GPU-bb@0000:3b:00.0 "},
      {three, {}, nullptr, "0@ 1@ 2@ "},
      {three, asleep, nullptr, "0@0000:1b:00.0 1@0000:62:00.0 "},
      {three,
       {told[0], told[2]},
       nullptr,
       "GPU-bb@0000:3b:00.0 GPU-c@0000:62:00.0 "},  // one GPU was lost
      {{"nvidia0"}, {information("0000:62:00.0", 0, "GPU-c", "Yes")}, nullptr, ""},
      {three, told, "", ""},
      {three, told, "-1", ""},
      {three, told, "2,0", "2@0000:62:00.0 0@0000:1b:00.0 "},
      {three, told, "0,1,-1,2", "0@0000:1b:00.0 1@0000:3b:00.0 "},
      {three, told, "1,7,0", "1@0000:3b:00.0 "},
      {three, told, "GPU-b,GPU-a", "GPU-b@0000:3b:00.0 GPU-a@0000:1b:00.0 "},
      {three, told, "GPU-a,GPU-x,GPU-c", "GPU-a@0000:1b:00.0 "},
      {three, {}, "GPU-x,GPU-y", "GPU-x@ GPU-y@ "},
      {three, told, "MIG-1,MIG-2", "MIG-1@ MIG-2@ "},
      {three, told, "all", ""},
      {{"null"}, {}, "0,MIG-1", ""},
  };
  for (const Case& one : cases) {
    CAPTURE(one.out);
    CHECK(text(find_gpus(one.devices, one.informations, one.visible)) == one.out);
  }
}

TEST_CASE("a worker sees the GPUs of its world's slots, then the others") {
  const HostId a(0), b(1);
  const auto world = [](const std::vector<std::pair<HostId, int>>& slots) {
    std::vector<Slot> made;
    for (const auto& [host, slot] : slots) made.push_back({host, {}, slot});
    return made;
  };
  struct Case {
    std::vector<Slot> world;
    int self;  // rank
    Names gpus;
    bool own_alone;
    const char* out;  // null: the variable is not changed
  };
  const Case cases[] = {
      {world({{a, 0}, {a, 1}}), 0, {"x", "y"}, false, "x,y"},
      {world({{a, 0}, {a, 1}}), 1, {"x", "y"}, false, "x,y"},
      {world({{a, 1}, {a, 0}}), 0, {"x", "y"}, false, "x,y"},  // by slot, whatever the ranks are
      {world({{a, 0}, {b, 0}}), 1, {"x", "y"}, false, "x,y"},
      {world({{a, 0}, {a, 2}}), 1, {"x", "y", "z"}, false, "x,z,y"},  // LOCAL_RANK 1 is slot 2
      {world({{a, 0}, {a, 2}}), 1, {"x", "", "z"}, false, "x,z"},
      {world({{a, 0}, {a, 1}}), 1, {"x"}, false, "x"},  // slot 1 has no GPU
      {world({{a, 0}, {a, 1}}), 1, {"x", "y"}, true, "y"},
      {world({{a, 0}, {a, 1}}), 1, {"x"}, true, ""},
      {world({{a, 0}}), 0, {""}, false, ""},
      {world({{a, 0}}), 0, {}, false, nullptr},
      {world({{a, 0}}), 0, {}, true, nullptr},
  };
  for (const Case& one : cases) {
    CAPTURE(one.out);
    const auto places = places_of(one.world);
    const auto list =
        visible_gpus(places[static_cast<std::size_t>(one.self)], one.gpus, one.own_alone);
    CHECK(list.has_value() == (one.out != nullptr));
    if (list && one.out) CHECK(*list == one.out);
  }
}

TEST_CASE("the kernel's files are read if they exist") {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "gpus_XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  const fs::path root = name;
  CHECK(own_gpus(root).empty());
  fs::create_directories(root / "dev");
  std::ofstream(root / "dev" / "nvidia1").put('\n');
  CHECK(text(own_gpus(root)) == "0@ ");
  fs::create_directories(root / "proc/driver/nvidia/gpus/0000:1b:00.0");
  CHECK(text(own_gpus(root)) == "0@ ");
  std::ofstream(root / "proc/driver/nvidia/gpus/0000:1b:00.0/information")
      << information("0000:1b:00.0", 1, "GPU-a");
  CHECK(text(own_gpus(root)) == "GPU-a@0000:1b:00.0 ");
  const Gpu gpu = own_gpus(root).front();
  CHECK(answers(gpu, root));  // as far as can be known
  const fs::path bus = root / "sys/bus/pci/devices/0000:1b:00.0";
  fs::create_directories(bus);
  std::ofstream(bus / "config") << "\xde\x10";
  CHECK(answers(gpu, root));
  std::ofstream(bus / "config") << "\xff\xff";
  CHECK_FALSE(answers(gpu, root));
  std::ofstream(bus / "config") << "\xde\x10";
  fs::remove_all(root / "proc/driver/nvidia/gpus/0000:1b:00.0");
  CHECK_FALSE(answers(gpu, root));
  CHECK(answers({"0", ""}, root));
  fs::remove_all(root);
}
