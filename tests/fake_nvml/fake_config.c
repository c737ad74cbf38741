/* Reads the file that FAKE_NVML_CONFIG names: one item a line, nothing guessed, nothing ignored. */
#define _GNU_SOURCE
#include "fake_config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_TEXT(name) #name,
static const char *const text_names[] = {TEXTS(NAME_TEXT)};
static const char *const number_names[] = {NUMBERS(NAME_TEXT)};
static const char *const link_names[] = {LINK_NUMBERS(NAME_TEXT)};

struct node node;

int listed(const struct names *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0) return 1;
    return 0;
}

int exported(const char *name) {
    Dl_info self;
    if (strncmp(name, "nvml", 4) != 0 || !dladdr(&node, &self)) return 0;
    void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    int found = library != NULL && dlsym(library, name) != NULL;
    if (library) dlclose(library);
    return found;
}

static int place(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static int number(const char *text, long long *value) {
    char *end;
    if (text == NULL || *text == '\0') return -1;
    *value = strtoll(text, &end, 0);
    return *end == '\0' ? 0 : -1;
}

static int within(const char *text, int limit, int *value) {
    long long found;
    if (number(text, &found) || found < 0 || found >= limit) return -1;
    *value = (int)found;
    return 0;
}

static int keep(char *to, const char *text) {
    if (text == NULL || *text == '\0' || strlen(text) >= TEXT_SIZE) return -1;
    strcpy(to, text);
    return 0;
}

static int add(struct names *names, const char *name) {
    if (name == NULL || !exported(name) || names->count == NAMES) return -1;
    return keep(names->list[names->count++], name);
}

/* `lost [N]`, `unknown [N]`, `reset-required [N]`, `hang NAME`, `hang-at-call N`, `slow MS` */
static int fault(struct gpu *gpu, char *rest) {
    char *kind = strsep(&rest, " ");
    long long value = 0;
    if (strcmp(kind, "hang") == 0) return add(&gpu->hang, rest);
    if (rest != NULL && number(rest, &value)) return -1;
    if (strcmp(kind, "hang-at-call") == 0) return (gpu->hang_at = value) > 0 ? 0 : -1;
    if (strcmp(kind, "slow") == 0) return (gpu->slow_ms = value) > 0 ? 0 : -1;
    gpu->fault = strcmp(kind, "lost") == 0             ? GPU_IS_LOST
                 : strcmp(kind, "unknown") == 0        ? UNKNOWN
                 : strcmp(kind, "reset-required") == 0 ? RESET_REQUIRED
                                                       : 0;
    gpu->fault_after = value;
    return gpu->fault ? 0 : -1;
}

/* `N remote BUS_ID` or `N KEY NUMBER` */
static int link_item(struct gpu *gpu, char *rest) {
    int index, item;
    if (within(strsep(&rest, " "), (int)gpu->number[NUMBER_nvlink_count], &index) || rest == NULL) return -1;
    char *key = strsep(&rest, " ");
    if (strcmp(key, "remote") == 0) return keep(gpu->link[index].remote, rest);
    if ((item = place(link_names, LINK_COUNT, key)) < 0) return -1;
    return number(rest, &gpu->link[index].number[item]);
}

/* `PID KIND NAME` */
static int process(struct gpu *gpu, char *rest) {
    long long pid;
    if (gpu->process_count == PROCESSES || number(strsep(&rest, " "), &pid) || rest == NULL) return -1;
    struct process *entry = &gpu->process[gpu->process_count++];
    char *kind = strsep(&rest, " ");
    entry->pid = (unsigned int)pid;
    entry->kind = *kind;
    return strlen(kind) == 1 && strchr("CGM", *kind) ? keep(entry->name, rest) : -1;
}

static int gpu_item(char *rest) {
    int index, item, peer;
    long long status;
    if (within(strsep(&rest, " "), GPUS, &index) || rest == NULL) return -1;
    struct gpu *gpu = &node.gpu[index];
    if (index >= node.gpu_count) node.gpu_count = index + 1;
    char *key = strsep(&rest, " ");
    if (rest == NULL) return -1;
    if ((item = place(text_names, TEXT_COUNT, key)) >= 0) {
        gpu->text_set[item] = 1;
        return keep(gpu->text[item], rest);
    }
    if ((item = place(number_names, NUMBER_COUNT, key)) >= 0) {
        gpu->number_set[item] = 1;
        if (number(rest, &gpu->number[item])) return -1;
        return item == NUMBER_nvlink_count && gpu->number[item] > LINKS ? -1 : 0;
    }
    if (strcmp(key, "link") == 0) return link_item(gpu, rest);
    if (strcmp(key, "process") == 0) return process(gpu, rest);
    if (strcmp(key, "fault") == 0) return fault(gpu, rest);
    if (strcmp(key, "not-supported") == 0) return add(&gpu->not_supported, rest);
    if (strcmp(key, "p2p") != 0 || within(strsep(&rest, " "), GPUS, &peer) || number(rest, &status)) return -1;
    gpu->p2p[peer] = (int)status;
    return 0;
}

static int item(char *line) {
    char *rest = line;
    char *key = strsep(&rest, " ");
    if (rest == NULL) return -1;
    if (strcmp(key, "gpu") == 0) return gpu_item(rest);
    if (strcmp(key, "driver") == 0) return keep(node.driver, rest);
    if (strcmp(key, "nvml") == 0) return keep(node.nvml, rest);
    if (strcmp(key, "cuda") == 0) return within(rest, 1000000, &node.cuda);
    if (strcmp(key, "device-count") == 0) return within(rest, GPUS + 1, &node.counted);
    if (strcmp(key, "init-error") == 0) return within(rest, 1000, &node.init_error);
    if (strcmp(key, "hang") == 0) return add(&node.hang, rest);
    return strcmp(key, "function-not-found") == 0 ? add(&node.missing, rest) : -1;
}

int read_config(void) {
    const char *path = getenv("FAKE_NVML_CONFIG");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], shown[512];
    int wrong = 0, count = 0;
    if (file == NULL) {
        fprintf(stderr, "fake nvml: FAKE_NVML_CONFIG names no readable file: %s\n", path ? path : "(not set)");
        return -1;
    }
    memset(&node, 0, sizeof node);
    node.counted = -1;
    for (int g = 0; g < GPUS; g++) {
        for (int p = 0; p < GPUS; p++) node.gpu[g].p2p[p] = -1;
        for (int l = 0; l < LINKS; l++) node.gpu[g].link[l].number[LINK_state] = 1;
    }
    while (!wrong && fgets(line, sizeof line, file)) {
        count++;
        line[strcspn(line, "\n")] = '\0';
        strcpy(shown, line);
        if (*line != '\0' && *line != '#' && item(line)) {
            fprintf(stderr, "fake nvml: %s:%d: no such item, or a wrong value: %s\n", path, count, shown);
            wrong = -1;
        }
    }
    fclose(file);
    if (node.counted < 0) node.counted = node.gpu_count;
    return wrong;
}
