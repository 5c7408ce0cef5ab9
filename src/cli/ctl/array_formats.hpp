// Arrays as numpy and PyTorch write them: the small texts and programs beside the bytes of the
// arrays. Pure.
//
// Both formats are zip archives whose members are not compressed. numpy.load reads a `.npz`, which
// has a file with a header for each array (NEP 1); torch.load reads a `.pt`, which has one file of
// bytes for each array and a pickle that makes a dict of tensors from them. The pickle uses only
// what torch.load(weights_only=True) accepts. Why not only one of the two: numpy knows no bfloat16,
// and who trains without Python's torch need not install it to look at weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elasticrun::cli::ctl {

struct ElementType {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::string_view numpy;  // its descr; empty: numpy has no such type
  std::string_view torch;  // its storage
};

// Null: there is no such type.
const ElementType* find_element_type(std::string_view name);
// All names, with commas.
std::string element_type_names();

// One array, of one dimension: the shape is the program's own business.
struct FlatArray {
  std::string name;
  const ElementType* type = nullptr;
  std::uint64_t count = 0;  // of elements

  std::uint64_t bytes() const { return count * type->bytes; }
};

// What precedes the elements in a .npy file (version 1.0); a multiple of 64 bytes.
std::string npy_header(const FlatArray& array);

// `data.pkl` of a .pt file: a dict from name to tensor. The elements of array i are in `data/i`.
std::string torch_pickle(const std::vector<FlatArray>& arrays);

}  // namespace elasticrun::cli::ctl
