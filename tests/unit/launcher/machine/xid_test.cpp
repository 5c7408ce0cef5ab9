// Lines of the kernel's log as drivers of several years have written them.
#include "launcher/machine/xid.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace elasticrun::launcher::machine;

TEST_CASE("Xids are found in the kernel's log") {
  struct Case {
    const char* line;
    const char* out;  // location, number and text; empty: no Xid
  };
  const Case cases[] = {
      {"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus.",
       "0000:3b:00 79 pid=1, name=python3, GPU has fallen off the bus."},
      {"4,901,1843308145,-;NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus.",
       "0000:44:00 79 GPU has fallen off the bus."},
      {"[  12.5] NVRM: Xid (PCI:0000:00:01.0): 79, pid='<unknown>', name=<unknown>, GPU has",
       "0000:00:01.0 79 pid='<unknown>', name=<unknown>, GPU has"},
      {"kernel: NVRM: Xid (PCI:0000:01:00): 79", "0000:01:00 79 "},
      {"NVRM: Xid (0000:03:00): 13, 0003 00000000 000090c0",
       "0000:03:00 13 0003 00000000 000090c0"},
      {"NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping",
       "0000:10:1c 63 pid=1896, Row Remapper: New row marked for remapping"},
      {"NVRM: Xid (PCI:0000:81:00 GPU-I:05): 43, pid=77, Ch 00000008",
       "0000:81:00 43 pid=77, Ch 00000008"},
      {"NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU",
       "0000:0b:00 154 GPU recovery action changed from 0x0 (None) to 0x1 (GPU"},
      {"NVRM: GPU at PCI:0000:01:00: GPU-34d7319c-5b19-1e75-186d-c187099e4fe5", ""},
      {"NVRM: Xid (43, pid: 5678): ROBUST", ""},
      {"NVRM: Xid (PCI:0000:01:00", ""},
      {"NVRM: Xid (PCI:0000:01:00): none", ""},
      {"NVRM: Xid (PCI:0000:01:00): 99999999999999999999, x", ""},
      {"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 11001, Fatal", ""},
      {"", ""},
  };
  for (const Case& one : cases) {
    CAPTURE(one.line);
    const auto xid = parse_xid(one.line);
    CHECK((xid ? fmt::format("{} {} {}", xid->location, xid->number, xid->text) : "") == one.out);
  }
}

TEST_CASE("an Xid is attributed to its GPU") {
  const Xid xid{"0000:3b:00", 79, ""};
  CHECK(is_of(xid, "0000:3b:00.0"));
  CHECK(is_of({"0000:3b:00.0", 79, ""}, "0000:3b:00.0"));
  CHECK_FALSE(is_of(xid, "0000:3b:01.0"));
  CHECK_FALSE(is_of(xid, "0001:3b:00.0"));
  CHECK_FALSE(is_of({"0000:3b:0", 79, ""}, "0000:3b:00.0"));
  CHECK_FALSE(is_of(xid, ""));
}

TEST_CASE("some Xids mean that the GPU is lost") {
  for (const int number : {13, 31, 43, 45, 63, 94, 0})
    CHECK_FALSE(loss({"", number, ""}).has_value());
  for (const int number : {46, 48, 62, 64, 79, 95, 119, 120, 140, 143, 154}) {
    CAPTURE(number);
    CHECK(loss({"", number, ""}).value().find(fmt::format(" (Xid {}); ", number)) !=
          std::string::npos);
  }
  CHECK_FALSE(loss({"", 154, "GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)"})
                  .has_value());
  CHECK(loss({"", 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node)"}).has_value());
}
