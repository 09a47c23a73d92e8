/* devices.h: settings of the emulated devices (devices.cpp). */
#ifndef EMULATOR_DEVICES_H
#define EMULATOR_DEVICES_H

/* The number in an environment variable, or `otherwise`. */
double emulator_setting(const char *name, double otherwise);

#endif
