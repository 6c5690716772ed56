// Makes the n-th allocation of a chosen library fail; python -m tools.faults preloads it.
//
// Every operator new of the process ends here. Calls that come from the library are counted, and
// the n-th one, or every one from the n-th on, throws std::bad_alloc. Memory that C code takes with
// malloc is left alone.

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void* library = nullptr;
std::atomic<long> n_calls{0};
long first_failure = 0;
bool is_lasting = false;

bool fails(void* caller) {
  Dl_info place;
  if (library == nullptr || dladdr(caller, &place) == 0 || place.dli_fbase != library) return false;
  const long number = ++n_calls;
  return first_failure > 0 && (number == first_failure || (is_lasting && number > first_failure));
}

void* allocate(std::size_t size, std::size_t alignment, void* caller) {
  if (fails(caller)) return nullptr;
  if (size == 0) size = 1;
  if (alignment == 0) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment, void* caller) {
  void* found = allocate(size, alignment, caller);
  if (found == nullptr) throw std::bad_alloc();
  return found;
}

}  // namespace

// Watch the library that holds the given address; the failure numbered 0 never comes.
extern "C" void xcount_fail_allocations(void* inside, long number, int lasting) {
  Dl_info place;
  n_calls = 0;
  first_failure = number;
  is_lasting = lasting != 0;
  library = dladdr(inside, &place) == 0 ? nullptr : place.dli_fbase;
}

extern "C" long xcount_allocations() { return n_calls; }

#define CALLER __builtin_return_address(0)

void* operator new(std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 0, CALLER); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, CALLER);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0, CALLER);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
