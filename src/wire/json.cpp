// The compiled half of Boost.JSON, built once here because it takes seconds. Since it is built from
// source, the static agent and the library do not need another shared object.
#include <boost/json/src.hpp>
