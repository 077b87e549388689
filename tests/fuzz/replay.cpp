// replay <folder>...: gives every file to a fuzz target, once.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

int main(int argc, char** argv) {
    std::size_t files = 0;
    for (int i = 1; i < argc; ++i) {
        for (auto const& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
            if (!entry.is_regular_file()) continue;
            std::ifstream in{entry.path(), std::ios::binary};
            std::string const bytes{std::istreambuf_iterator<char>{in}, {}};
            auto const* const data = reinterpret_cast<std::uint8_t const*>(bytes.data());
            (void)LLVMFuzzerTestOneInput(data, bytes.size());
            ++files;
        }
    }
    std::printf("%zu inputs\n", files);
    return files > 0 ? 0 : 1;
}
