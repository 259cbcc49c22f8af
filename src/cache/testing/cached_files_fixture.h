// CachedFiles over a disk in memory and a source whose reads take as long as told.
#pragma once

#include <memory>
#include <string>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/cached_files.h"
#include "src/cache/segment_store.h"
#include "src/cache/testing/memory_disk.h"
#include "src/cache/testing/slow_files.h"

namespace sluice::cache::testing {

struct CachedFilesFixture {
  std::shared_ptr<DiskContent> disk = std::make_shared<DiskContent>();
  sluice::testing::ManualClock clock;
  std::shared_ptr<SlowFiles> source = std::make_shared<SlowFiles>(clock);
  std::unique_ptr<CachedFiles> files;

  // A new process over the same disk.
  void start(Keep keep, Limits limits = {.bytes = 10 << 20}, const std::string& name_space = "team") {
    files.reset();
    files = std::make_unique<CachedFiles>(source, store_on(std::make_unique<MemoryDisk>(disk), limits, clock),
                                          name_space, clock, keep);
    REQUIRE(files->wait_until_opened());
  }
};

}  // namespace sluice::cache::testing
