// Wine 8 lacks three calls of Windows 10 that Go programs make. This library brings them, for tests
// under Wine alone. Every Go program loads bcryptprimitives.dll at its start, for ProcessPrng.
#include <string.h>
#include <winsock2.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); // RtlGenRandom

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size) {
    return SystemFunction036(bytes, (ULONG)size);
}

typedef LONG NTAPI set_information(HANDLE, PVOID, PVOID, ULONG, ULONG);
static set_information *wine_set_information;

// set answers STATUS_INVALID_INFO_CLASS to FileDispositionInformationEx, as Windows 8 does. Wine
// answers STATUS_NOT_IMPLEMENTED, for which os.RemoveAll has no second way.
static LONG NTAPI set(HANDLE file, PVOID status, PVOID information, ULONG size, ULONG class) {
    return class == 64 ? (LONG)0xC0000003 : wine_set_information(file, status, information, size, class);
}

typedef int WSAAPI ioctl(SOCKET, DWORD, PVOID, DWORD, PVOID, DWORD, DWORD *, WSAOVERLAPPED *, PVOID);
static ioctl *wine_ioctl;

// control accepts SIO_UDP_NETRESET, which Go sets for each UDP socket. Wine never resets one.
static int WSAAPI control(SOCKET s, DWORD code, PVOID in, DWORD in_size, PVOID out, DWORD out_size, DWORD *returned,
                          WSAOVERLAPPED *overlapped, PVOID completion) {
    return code == 0x9800000F ? 0 : wine_ioctl(s, code, in, in_size, out, out_size, returned, overlapped, completion);
}

// replace puts a function into a library's table of exports, where GetProcAddress finds it, and
// returns the library's own. An entry is an offset of 32 bits, so it leads to a jump near the
// library.
static void *replace(HMODULE library, const char *name, void *with) {
    BYTE *base = (BYTE *)library, *stub = NULL;
    IMAGE_NT_HEADERS *header = (void *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
    IMAGE_EXPORT_DIRECTORY *exports = (void *)(base + header->OptionalHeader.DataDirectory[0].VirtualAddress);
    DWORD *names = (void *)(base + exports->AddressOfNames), *functions = (void *)(base + exports->AddressOfFunctions);
    WORD *ordinals = (void *)(base + exports->AddressOfNameOrdinals);
    BYTE jump[12] = {0x48, 0xb8, [10] = 0xff, [11] = 0xe0}; // mov with, %rax; jmp *%rax
    DWORD i = 0, access;
    memcpy(jump + 2, &with, sizeof with);
    for (DWORD at = 1; !stub && at < 1 << 15; at++)
        stub = VirtualAlloc(base + ((SIZE_T)at << 16), sizeof jump, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
    while (i < exports->NumberOfNames && strcmp((char *)base + names[i], name) != 0)
        i++;
    if (!stub || i == exports->NumberOfNames)
        return NULL;
    memcpy(stub, jump, sizeof jump);
    DWORD *entry = &functions[ordinals[i]];
    void *own = base + *entry;
    if (!VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &access))
        return NULL;
    *entry = (DWORD)(stub - base);
    return VirtualProtect(entry, sizeof *entry, access, &access) ? own : NULL;
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved) {
    (void)self, (void)reserved;
    if (reason != DLL_PROCESS_ATTACH)
        return TRUE;
    wine_set_information = replace(LoadLibraryA("ntdll"), "NtSetInformationFile", (void *)set);
    wine_ioctl = replace(LoadLibraryA("ws2_32"), "WSAIoctl", (void *)control);
    return wine_set_information && wine_ioctl;
}
