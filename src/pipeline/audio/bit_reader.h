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
  static constexpr unsigned kBitsMax = 32;  // of one read

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

  // Two of them, as encoders write most: together below 57 bits, and not at the end. Else nothing is taken. The next
  // bits are fetched once for both, and the second code is found before the first one is known to be so short.
  [[gnu::always_inline]] bool read_two_rice(unsigned parameter, std::uint64_t& first, std::uint64_t& second) {
    if (end_ - next_ < kWordBytes) [[unlikely]]
      return false;
    fill_from_word();
    const auto quotient = static_cast<unsigned>(std::countl_zero(bits_ | 1));
    const unsigned length = quotient + 1 + parameter;
    const std::uint64_t rest = bits_ << (length % 64);
    const auto second_quotient = static_cast<unsigned>(std::countl_zero(rest | 1));
    const unsigned second_length = second_quotient + 1 + parameter;
    if (length + second_length > available_) [[unlikely]]
      return false;
    first = std::uint64_t{quotient} << parameter | ((bits_ << quotient << 1) >> 1) >> (63 - parameter);
    second = std::uint64_t{second_quotient} << parameter | ((rest << second_quotient << 1) >> 1) >> (63 - parameter);
    bits_ = rest << second_length;
    available_ -= length + second_length;
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
