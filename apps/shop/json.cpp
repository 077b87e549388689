// The library of Boost.JSON, compiled here: its headers are all that is needed of it.
#include <boost/json/src.hpp>
