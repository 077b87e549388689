#include "rondo/http/server.hpp"

namespace rondo::http {

task<void> next::operator()(exchange* x) const {
    if (index_ == of_->layers_.size()) return of_->inner_(x);
    return of_->layers_[index_](x, next{*of_, index_ + 1});
}

}  // namespace rondo::http
