// See export_command.hpp.
#include "cli/ctl/export_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/line.hpp"
#include "base/text.hpp"
#include "cli/ctl/array_archive.hpp"
#include "save/file.hpp"
#include "save/folder.hpp"
#include "save/manifest.hpp"

namespace elasticrun::cli::ctl {
namespace {

using wire::saved::Array;

constexpr std::size_t name_max = 200;  // bytes of an array's name that are printed

// What the user says about the types of arrays.
struct TypesAsked {
  const ElementType* state = find_element_type("uint8");  // of state that is not in `named`
  std::map<std::string, const ElementType*, std::less<>> named;
};

Result<TypesAsked> read_types(const std::vector<std::string>& types) {
  TypesAsked asked;
  for (const std::string& one : types) {
    const std::size_t equals = one.rfind('=');
    const std::string name = equals == one.npos ? one : one.substr(equals + 1);
    const ElementType* const type = find_element_type(name);
    if (!type)
      return Error{fmt::format("--as: '{}' is no type; these are: {}", name, element_type_names())};
    if (equals == one.npos)
      asked.state = type;
    else
      asked.named[one.substr(0, equals)] = type;
  }
  return asked;
}

Result<void> check_archive_can_hold(const std::string& file, const std::vector<FlatArray>& arrays) {
  if (!file.ends_with(".npz")) return {};
  for (const FlatArray& array : arrays)
    if (array.type->numpy.empty())
      return Error{fmt::format("{}: numpy has no {}, the type of {}; write a .pt file", file,
                               array.type->name, array.name)};
  return {};
}

// A file has each name once. A state source may list an array under a name that is registered, and
// that array gets its kind in front.
std::vector<Array> named_apart(std::vector<Array> arrays) {
  std::set<std::string> taken;
  for (Array& array : arrays) {
    while (!taken.insert(array.name).second) array.name = array.kind + "." + array.name;
  }
  return arrays;
}

}  // namespace

Result<std::vector<FlatArray>> typed(const std::vector<Array>& listed,
                                     const std::vector<std::string>& types) {
  const std::vector<Array> arrays = named_apart(listed);
  const auto asked = read_types(types);
  if (!asked) return asked.error();
  std::vector<FlatArray> flat;
  for (const Array& array : arrays) {
    const auto named = asked->named.find(array.name);
    const ElementType* type = named != asked->named.end() ? named->second
                              : array.type.empty()        ? asked->state
                                                          : find_element_type(array.type);
    if (!type) return Error{fmt::format("{} is of an unknown type, {}", array.name, array.type)};
    if (array.bytes % type->bytes != 0)
      return Error{
          fmt::format("--as: {} has {}, which is no number of {}; name its type, as in "
                      "--as {}=uint8",
                      array.name, counted(static_cast<std::int64_t>(array.bytes), "byte"),
                      type->name, array.name)};
    flat.push_back({array.name, type, array.bytes / type->bytes});
  }
  for (const auto& [name, type] : asked->named)
    if (std::ranges::find(arrays, name, &Array::name) == arrays.end()) {
      std::string known;
      for (const Array& array : arrays) known += (known.empty() ? "" : ", ") + array.name;
      return Error{fmt::format("--as: the save has no '{}'; it has {}", name, known)};
    }
  return flat;
}

Result<Report> export_command(const ExportCommand& command) {
  if (!command.file.ends_with(".npz") && !command.file.ends_with(".pt"))
    return Error{fmt::format("{}: give a file that ends in .npz (for numpy) or .pt (for PyTorch)",
                             command.file)};
  const auto save = save::find_save(command.save);
  if (!save) return save.error();
  const auto unreadable = [&](const Error& error) {
    if (*save == command.save) return error;
    return Error{fmt::format("{} (the newest save in {}; another one can be given)", error.text,
                             command.save)};
  };
  const auto manifest = save::read_manifest(*save);
  if (!manifest) return unreadable(manifest.error());
  const auto contents = save::read_contents(*save, *manifest);
  if (!contents) return unreadable(contents.error());
  auto arrays = typed(contents->arrays, command.types);
  if (!arrays) return arrays.error();
  if (auto held = check_archive_can_hold(command.file, *arrays); !held) return held.error();

  std::uint64_t bytes = 0;
  std::string table;
  for (const FlatArray& array : *arrays) {
    bytes += array.bytes();
    table += fmt::format("  {:<24} {:<8} {}\n", as_line(array.name, name_max), array.type->name,
                         array.count);
  }
  std::uint64_t in_parts = 0;
  for (std::size_t i = 1; i < manifest->files.size(); ++i) in_parts += manifest->files[i].bytes;
  if (in_parts != bytes)
    return Error{fmt::format("{} is damaged: its parts have {} bytes, and its arrays {}", *save,
                             in_parts, bytes)};

  auto archive = ArrayArchive::create(command.file, std::move(*arrays));
  if (!archive) return archive.error();
  for (std::size_t i = 1; i < manifest->files.size(); ++i) {
    std::optional<Error> failed;
    const auto read =
        save::read_file(*save, manifest->files[i], [&](std::span<const std::byte> block) {
          if (failed) return;
          if (auto written = archive->write(block); !written) failed = written.error();
        });
    if (failed) return *failed;
    if (!read) return unreadable(read.error());
  }
  if (auto finished = archive->finish(); !finished) return finished.error();
  return Report{fmt::format("{}: step {} of {}\n{}", command.file, manifest->step, *save, table)};
}

}  // namespace elasticrun::cli::ctl
