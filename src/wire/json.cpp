// The compiled half of Boost.JSON, once: it takes seconds, and a build of its own lets the static
// agent and the library go without another shared object.
#include <boost/json/src.hpp>
