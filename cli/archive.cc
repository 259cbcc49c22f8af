#include "cli/archive.h"

#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace sluice::cli {
namespace {

constexpr std::size_t kBlockBytes = 512;
constexpr int kGzipWindowBits = 15 + 16;  // zlib's way to ask for gzip's header
constexpr int kMemoryLevel = 8;           // zlib's default

// A header of POSIX.1-1988 (ustar).
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlockBytes);

template <std::size_t Bytes>
void put_octal(char (&field)[Bytes], unsigned long long value) {
  std::snprintf(field, Bytes, "%0*llo", static_cast<int>(Bytes) - 1, value);
}

// A long path is kept in two parts. Both fields are zero-filled already.
bool put_path(Header& header, const std::string& path) {
  std::size_t cut = 0;  // of the prefix
  if (path.size() > sizeof(header.name)) {
    cut = path.find('/', path.size() - sizeof(header.name) - 1);
    if (cut == std::string::npos || cut == 0 || cut > sizeof(header.prefix)) return false;
    std::memcpy(header.prefix, path.data(), cut);
    ++cut;
  }
  std::memcpy(header.name, path.data() + cut, path.size() - cut);
  return true;
}

Result<Header> header_of(const ArchiveFile& file, Clock::WallTimePoint made) {
  Header header{};
  if (!put_path(header, file.path)) return invalid_argument(file.path + ": the path is too long for an archive");
  put_octal(header.mode, 0600);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_octal(header.size, file.text.size());
  put_octal(header.time, static_cast<unsigned long long>(std::chrono::system_clock::to_time_t(made)));
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof(header.magic));
  std::memcpy(header.version, "00", sizeof(header.version));
  std::memset(header.checksum, ' ', sizeof(header.checksum));
  std::array<unsigned char, kBlockBytes> bytes;
  std::memcpy(bytes.data(), &header, kBlockBytes);
  std::snprintf(header.checksum, sizeof(header.checksum), "%06o", std::accumulate(bytes.begin(), bytes.end(), 0U));
  return header;
}

Result<std::string> gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return internal_error("zlib cannot compress");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // which zlib does not change
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int ended = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (ended != Z_STREAM_END) return internal_error("zlib cannot compress");
  return packed;
}

}  // namespace

Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, Clock::WallTimePoint made) {
  std::string tar;
  for (const ArchiveFile& file : files) {
    SLUICE_TRY(const Header header, header_of(file, made));
    tar.append(reinterpret_cast<const char*>(&header), sizeof(header));
    tar += file.text;
    tar.resize((tar.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  }
  tar.resize(tar.size() + 2 * kBlockBytes);  // the end
  return gzip(tar);
}

}  // namespace sluice::cli
