// Policies that authenticate every request: by "Authorization: Bearer <token>", or by a user's password.
#pragma once

#include <memory>

#include "src/http/transport.h"

namespace sluice::http {

// Where tokens come from. Thread safety: implementations may be called from any thread.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual Result<std::string> token() = 0;

  // The server answered 401 to `token`: it must be read anew before the next use.
  virtual void rejected(const std::string& token) = 0;
};

// A Transport that authenticates with the tokens of `source` and sends through `inner`. A 401 makes the source forget
// the token; the request is sent once more if the source then has another one.
std::shared_ptr<Transport> with_bearer_token(std::shared_ptr<Transport> inner, std::shared_ptr<TokenSource> source);

// The same with "Authorization: Basic": what `passwords` gives is the password of `username`.
std::shared_ptr<Transport> with_basic_auth(std::shared_ptr<Transport> inner, std::string username,
                                           std::shared_ptr<TokenSource> passwords);

}  // namespace sluice::http
