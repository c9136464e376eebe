# A kind of device is a few lines; its plan is NAME.json beside this file. `make device-NAME` builds frogpond for it and plays with
# its plan, under an emulator of its processor and pages where it isn't built on such a device.
#
#   target   of targets.mk      page   bytes of a page        cflags   of the C compiler
#   memory   of the device      cpu    that plays it here     env      of the go command

DEVICES = cortex-a35 cortex-a55 cortex-a76-16k cortex-a72-64k cortex-a7

cortex-a35.target = linux-arm64
cortex-a35.memory = 1GiB
cortex-a35.page   = 4096
cortex-a35.cflags = -mcpu=cortex-a35
cortex-a35.env    = GOARM64=v8.0
cortex-a35.cpu    = cortex-a35

# The emulator has no A55 in Debian 12; an A76 has all of its instructions.
cortex-a55.target = linux-arm64
cortex-a55.memory = 2GiB
cortex-a55.page   = 4096
cortex-a55.cflags = -mcpu=cortex-a55
cortex-a55.env    = GOARM64=v8.2
cortex-a55.cpu    = cortex-a76

cortex-a76-16k.target = linux-arm64
cortex-a76-16k.memory = 4GiB
cortex-a76-16k.page   = 16384
cortex-a76-16k.cflags = -mcpu=cortex-a76
cortex-a76-16k.env    = GOARM64=v8.2
cortex-a76-16k.cpu    = cortex-a76

cortex-a72-64k.target = linux-arm64
cortex-a72-64k.memory = 4GiB
cortex-a72-64k.page   = 65536
cortex-a72-64k.cflags = -mcpu=cortex-a72
cortex-a72-64k.env    = GOARM64=v8.0
cortex-a72-64k.cpu    = cortex-a72

cortex-a7.target = linux-arm
cortex-a7.memory = 512MiB
cortex-a7.page   = 4096
cortex-a7.cflags = -mcpu=cortex-a7 -mfpu=neon-vfpv4
cortex-a7.env    = GOARM=7
cortex-a7.cpu    = cortex-a7
