// The choice of the way to a communicator, as a table.
#include "worker/gpu/nccl_path.hpp"

#include <doctest/doctest.h>

namespace elasticrun::worker::gpu {
namespace {

constexpr NcclFeatures all{.scalable_init = true, .shrink = true};
constexpr NcclFeatures none{};

// An offer of a rank that was `rank` of `size` in world `world`; 0: in no world.
NcclOffer offer(ParentHealth health, std::uint64_t world = 0, int rank = -1, int size = 0) {
  return {.version = 22809,
          .driver = 13000,
          .host = "n1",
          .parent = health,
          .parent_id = world,
          .parent_rank = rank,
          .parent_size = size,
          .unique_id = "id"};
}

struct Row {
  const char* what;
  std::vector<NcclOffer> offers;
  NcclFeatures features;
  NcclInit init;
  std::vector<int> excluded;
  const char* reason;
};

TEST_CASE("the way to a communicator follows from the offers") {
  const auto fresh = offer(ParentHealth::none);
  const auto quiet = [](int rank, int size) { return offer(ParentHealth::quiet, 7, rank, size); };
  const auto running = [](int rank, int size) {
    return offer(ParentHealth::running, 7, rank, size);
  };
  const std::vector<Row> rows = {
      {"the first world",
       {fresh, fresh},
       all,
       NcclInit::init,
       {},
       "a rank has no communicator to shrink"},
      {"planned: ranks came",
       {running(0, 2), running(1, 2), fresh},
       all,
       NcclInit::init,
       {},
       "the old world still trains"},
      {"planned: ranks go",
       {running(0, 3), running(2, 3)},
       all,
       NcclInit::init,
       {},
       "the old world still trains"},
      {"forced: one went, nothing under way",
       {quiet(0, 3), quiet(2, 3)},
       all,
       NcclInit::shrink,
       {1},
       "1 of 3 ranks went and none came"},
      {"forced: two went",
       {quiet(1, 4), quiet(3, 4)},
       all,
       NcclInit::shrink,
       {0, 2},
       "2 of 4 ranks went and none came"},
      {"forced: one went, a spare came",
       {quiet(0, 3), quiet(2, 3), fresh},
       all,
       NcclInit::init,
       {},
       "a rank has no communicator to shrink"},
      {"forced: nobody went", {quiet(0, 2), quiet(1, 2)}, all, NcclInit::init, {}, "no rank went"},
      {"forced: one had to give its own up",
       {quiet(0, 3), offer(ParentHealth::none, 7, 1, 3)},
       all,
       NcclInit::init,
       {},
       "a rank has no communicator to shrink"},
      {"forced in mid-switch",
       {quiet(0, 3), offer(ParentHealth::quiet, 8, 1, 3)},
       all,
       NcclInit::init,
       {},
       "the ranks come from different worlds"},
      {"other order",
       {quiet(2, 3), quiet(0, 3)},
       all,
       NcclInit::init,
       {},
       "the ranks changed their order"},
      {"one is left", {quiet(2, 3)}, all, NcclInit::init, {}, "one rank needs no communicator"},
      {"an old NCCL",
       {quiet(0, 3), quiet(2, 3)},
       none,
       NcclInit::init,
       {},
       "this NCCL cannot shrink"},
      {"large",
       std::vector<NcclOffer>(257, fresh),
       all,
       NcclInit::scalable_init,
       {},
       "a rank has no communicator to shrink"},
      {"just not large",
       std::vector<NcclOffer>(256, fresh),
       all,
       NcclInit::init,
       {},
       "a rank has no communicator to shrink"},
      {"large, an old NCCL",
       std::vector<NcclOffer>(257, fresh),
       none,
       NcclInit::init,
       {},
       "a rank has no communicator to shrink"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const auto path = choose_path(row.offers, row.features);
    REQUIRE(path.has_value());
    CHECK(name_of(path->init) == name_of(row.init));
    CHECK(path->excluded == row.excluded);
    CHECK(path->reason == row.reason);
    CHECK(path->doubt == "");
  }
}

TEST_CASE("versions are compared before anything is formed") {
  std::vector<NcclOffer> offers(4, offer(ParentHealth::none));
  offers[1].host = "n2";
  offers[2].host = offers[3].host = "n3";
  offers[2].version = offers[3].version = 22707;
  const auto other = choose_path(offers, all);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().text ==
        "NCCL differs: 2.28.9 on n1, n2; 2.27.7 on n3; install one version on all hosts");

  offers[2].version = offers[3].version = 22809;
  offers[3].driver = 12080;
  offers[3].host = "n4";
  const auto path = choose_path(offers, all);
  REQUIRE(path.has_value());
  CHECK(path->doubt == "CUDA drivers differ: 13.0 on n1, n2, n3; 12.8 on n4");
}

TEST_CASE("a rank that has to provide a unique id must have done so") {
  std::vector<NcclOffer> offers(600, offer(ParentHealth::none));
  for (int rank = 0; rank < 600; ++rank)
    CHECK(lends_unique_id(rank, 600, all) == (rank == 0 || rank == 256 || rank == 512));
  CHECK(lends_unique_id(0, 600, none));
  CHECK_FALSE(lends_unique_id(256, 600, none));
  CHECK(choose_path(offers, all).has_value());
  offers[256].unique_id.clear();
  CHECK(choose_path(offers, all).error().text == "rank 256 lent no unique id");
  CHECK(choose_path(offers, none).has_value());
}

TEST_CASE("a function is used only in versions where it exists and works") {
  struct Version {
    int version;
    bool scalable, shrink;
  };
  const NcclSymbols has{true, true};
  for (const Version& row :
       {Version{22203, false, false}, Version{22304, true, false}, Version{22602, true, false},
        Version{22703, true, true}, Version{22802, true, true}, Version{22803, true, false},
        Version{22808, true, false}, Version{22809, true, true}, Version{23102, true, true}}) {
    CAPTURE(row.version);
    const NcclFeatures features = nccl_features(row.version, has);
    CHECK(features.scalable_init == row.scalable);
    CHECK(features.shrink == row.shrink);
  }
  CHECK_FALSE(nccl_features(23102, {}).shrink);
  for (const NcclFunction& row : nccl_functions()) CHECK(std::string(row.source).size() > 0);
}

TEST_CASE("an offer is encoded as one word") {
  NcclOffer sent = offer(ParentHealth::quiet, 0xfeedbeefcafe, 3, 9);
  sent.host = "rack/7";
  const std::string text = to_text(sent);
  CHECK(text.find(' ') == text.npos);
  const auto read = parse_offer(text);
  REQUIRE(read.has_value());
  CHECK(read->version == sent.version);
  CHECK(read->driver == sent.driver);
  CHECK(read->host == "rack_7");
  CHECK(read->parent == ParentHealth::quiet);
  CHECK(read->parent_id == sent.parent_id);
  CHECK(read->parent_rank == 3);
  CHECK(read->parent_size == 9);
  CHECK(read->unique_id == "id");
}

TEST_CASE("a text that is no valid offer is refused") {
  for (const char* text :
       {"", "127.0.0.1/8f3a", "nccl/22809/13000/n1/none/0/-1/0", "nccl/x/13000/n1/none/0/-1/0/",
        "nccl/22809/13000/n1/well/0/-1/0/", "nccl/22809/13000/n1/quiet/7/3/3/",
        "nccl/22809/13000/n1/none/0/-1/0//"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_offer(text).has_value());
  }
  CHECK(parse_offer("nccl/22809/13000/n1/none/0/-1/0/").has_value());
}

}  // namespace
}  // namespace elasticrun::worker::gpu
