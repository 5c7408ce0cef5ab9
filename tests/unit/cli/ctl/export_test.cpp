// elasticctl export as functions: types of arrays, and what lies beside their elements in a file.
#include <doctest/doctest.h>

#include "cli/ctl/export_command.hpp"
#include "cli/ctl/options.hpp"

using namespace elasticrun;
using namespace elasticrun::cli::ctl;
using namespace std::string_literals;

namespace {

const std::vector<wire::saved::Array> arrays{
    {"state", "weights", "", 12}, {"state", "step", "", 8}, {"buffers", "mean", "float64", 16}};

std::string types_of(const std::vector<std::string>& types) {
  const auto flat = typed(arrays, types);
  if (!flat) return flat.error().text;
  std::string text;
  for (const FlatArray& array : *flat)
    text +=
        array.name + ":" + std::string(array.type->name) + ":" + std::to_string(array.count) + " ";
  return text;
}

}  // namespace

TEST_CASE("types of arrays") {
  CHECK(types_of({}) == "weights:uint8:12 step:uint8:8 mean:float64:2 ");
  CHECK(types_of({"float32"}) == "weights:float32:3 step:float32:2 mean:float64:2 ");
  CHECK(types_of({"float32", "step=int64"}) == "weights:float32:3 step:int64:1 mean:float64:2 ");
  CHECK(types_of({"mean=uint8"}) == "weights:uint8:12 step:uint8:8 mean:uint8:16 ");
  CHECK(types_of({"double"}) ==
        "--as: 'double' is no type; these are: uint8, int32, int64, float16, bfloat16, float32, "
        "float64");
  CHECK(types_of({"weight=float32"}) ==
        "--as: the save has no 'weight'; it has weights, step, mean");
  CHECK(types_of({"float64"}) ==
        "--as: weights has 12 bytes, which is no number of float64; name its type, as in --as "
        "weights=uint8");
}

TEST_CASE("arrays of one name are kept under several") {
  const auto flat = typed({{"state", "w", "", 4}, {"source", "w", "", 8}, {"source", "w", "", 2}},
                          {"source.w=int64"});
  REQUIRE_MESSAGE(flat.has_value(), flat.error().text);
  REQUIRE(flat->size() == 3);
  CHECK((*flat)[0].name == "w");
  CHECK((*flat)[1].name == "source.w");
  CHECK((*flat)[1].type->name == "int64");
  CHECK((*flat)[2].name == "source.source.w");
}

TEST_CASE("flags of export") {
  const char* arguments[] = {"elasticctl",         "export", "--as",
                             "float32,step=int64", "state",  "m.npz"};
  const auto asked = parse_ctl(6, arguments);
  const auto& command = std::get<ExportCommand>(asked.value());
  CHECK(command.save == "state");
  CHECK(command.file == "m.npz");
  CHECK(command.types == std::vector<std::string>{"float32", "step=int64"});
}

TEST_CASE("the header of a .npy file fills 64 bytes") {
  const FlatArray weights{"weights", find_element_type("float32"), 3};
  const std::string header = npy_header(weights);
  CHECK(header.size() % 64 == 0);
  CHECK(header.starts_with("\x93NUMPY\x01\x00\x76\x00"s));
  CHECK(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }  ") == 10);
  CHECK(header.back() == '\n');
}

TEST_CASE("the pickle of a .pt file") {
  // As pickle.Pickler(protocol=2) would write it, but for numbers, which have one length here.
  const std::string count = "\x8a\x09\x03\x00\x00\x00\x00\x00\x00\x00\x00"s;
  const std::string zero = "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00"s;
  const std::string one = "\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00"s;
  CHECK(torch_pickle({{"w", find_element_type("bfloat16"), 3}}) ==
        "\x80\x02}(X\x01\x00\x00\x00w"s + "ctorch._utils\n_rebuild_tensor_v2\n((" +
            "X\x07\x00\x00\x00storagectorch\nBFloat16Storage\n"s +
            "X\x01\x00\x00\x00"
            "0"s +
            "X\x03\x00\x00\x00"
            "cpu"s +
            count + "tQ" + zero + count + "\x85" + one +
            "\x85\x89"
            "ccollections\nOrderedDict\n)RtRu.");
}
