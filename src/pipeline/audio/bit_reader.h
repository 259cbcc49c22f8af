// Bits of a byte string, the highest of a byte first.
//
// Behind the end there are zeros; overran() says whether any of them was taken. So the loops that read need not look at
// the end, and the reader looks once for all.
//
// Thread safety: none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice::pipeline::audio {

class BitReader {
 public:
  static constexpr unsigned kBitsMax = 32;            // of one read
  static constexpr unsigned kQuickParameterMax = 26;  // Codes below 57 bits are then below 2^32.

  explicit BitReader(std::span<const std::uint8_t> bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()), begin_(bytes.data()) {}

  // REQUIRES: count <= kBitsMax
  [[gnu::always_inline]] std::uint32_t read(unsigned count) {
    fill();
    const auto value = static_cast<std::uint32_t>((bits_ >> 1) >> (63 - count));
    drop(count);
    return value;
  }

  // Two's complement. REQUIRES: 0 < count <= kBitsMax
  [[gnu::always_inline]] std::int32_t read_signed(unsigned count) {
    return static_cast<std::int32_t>(read(count) << (32 - count)) >> (32 - count);
  }

  // The number of zeros before the next one, which is taken, too. Behind the end: some number.
  std::uint64_t read_unary() {
    for (std::uint64_t zeros = 0;; zeros += available_, drop(available_)) {
      fill();
      const auto more = static_cast<unsigned>(std::countl_zero(bits_));
      if (more < available_) {
        drop(more + 1);
        return zeros + more;
      }
      if (overran()) return zeros;
    }
  }

  // A Rice code with a parameter up to 30: a quotient in unary, a remainder in binary.
  std::uint64_t read_rice(unsigned parameter) {
    const std::uint64_t quotient = read_unary();
    return quotient << parameter | read(parameter);
  }

  // Some of them, as encoders write most: together below 57 bits, and not at the end. Else nothing is taken. The next
  // bits are fetched once for all, and each code is found before the ones in front of it are known to be so short.
  // REQUIRES: parameter <= kQuickParameterMax
  template <std::size_t kCount>
  [[gnu::always_inline]] bool read_rice_codes(unsigned parameter, std::int32_t* codes) {
    if (end_ - next_ < kWordBytes) [[unlikely]]
      return false;
    fill_from_word();
    std::uint64_t rest = bits_;
    unsigned length = kCount * (parameter + 1);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto quotient = static_cast<unsigned>(std::countl_zero(rest));
      length += quotient;
      rest <<= quotient % 64;  // A one, and the remainder behind it.
      codes[i] = static_cast<std::int32_t>((quotient << parameter) +
                                           static_cast<std::uint32_t>(rest >> (63 - parameter)) - (1U << parameter));
      rest <<= parameter + 1;
    }
    if (length > available_) [[unlikely]]
      return false;
    bits_ = rest;
    available_ -= length;
    return true;
  }

  void skip_to_byte() { drop(available_ % 8); }

  // How many whole bytes were taken. REQUIRES: skip_to_byte() before it, !overran()
  std::size_t position() const { return static_cast<std::size_t>(next_ - begin_) - (available_ - zeros_) / 8; }

  bool overran() const { return zeros_ > available_; }

 private:
  static constexpr std::ptrdiff_t kWordBytes = 8;

  // At least 56 bits are available afterwards, or zeros in their place.
  void fill() {
    if (end_ - next_ >= kWordBytes) {
      fill_from_word();
      return;
    }
    for (; available_ < 56; available_ += 8) {
      if (next_ < end_) {
        bits_ |= std::uint64_t{*next_++} << (56 - available_);
      } else {
        zeros_ += 8;
      }
    }
  }

  [[gnu::always_inline]] void fill_from_word() {
    std::uint64_t word = 0;
    std::memcpy(&word, next_, sizeof(word));
    bits_ |= __builtin_bswap64(word) >> available_;
    next_ += (63 - available_) / 8;
    available_ |= 56;
  }

  [[gnu::always_inline]] void drop(unsigned count) {
    bits_ <<= count;
    available_ -= count;
  }

  std::uint64_t bits_ = 0;  // the next ones at the top
  unsigned available_ = 0;  // how many of them count, below 64; those behind are the same bits or zeros
  unsigned zeros_ = 0;      // how many of these lie behind the end, as if there were more than a string can hold
  const std::uint8_t* next_;
  const std::uint8_t* end_;
  const std::uint8_t* begin_;
};

}  // namespace sluice::pipeline::audio
