/* Cells of delimited text as codes: each distinct text of a column is kept once.
 * See io/text.py for the plain twin, and io/cells.py for who cuts the text into blocks.
 *
 * A block is read by one thread into dictionaries of its own; those of several threads are joined
 * at the end, and only then the distinct texts are sorted. Rows are taken ROWS at a time: find
 * their cells, ask for the memory where each text would be, then look there. */

#include "_native.h"

#define ROWS 64
#define SLACK 16     /* bytes behind a block that may be read, though they mean nothing */
#define SHORT 16     /* texts up to this long are kept in the table itself */
#define FEW 24       /* texts sorted by comparing them */

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address)
#endif

typedef struct {
    uint64_t first, second; /* the text itself; of a long one its hash, and its place in `text` */
    uint32_t size, number;  /* bytes, and its code + 1; no text where that is 0 */
} Slot;

typedef struct {
    Slot *slots;
    uint64_t mask;   /* number of slots - 1 */
    int64_t n, room; /* distinct texts, and how many fit into `start` */
    uint64_t *start; /* (n + 1): where each begins in `text` */
    char *text;
    uint64_t text_room;
} Column;

typedef struct {
    int n;
    Column column[];
} Cells;

typedef struct {
    const char *at;
    uint64_t first, second, hash;
    uint32_t size;
} Cell;

static const char NAME[] = "crowdwise.cells";

static void free_cells(PyObject *capsule)
{
    Cells *cells = PyCapsule_GetPointer(capsule, NAME);
    for (int c = 0; c < cells->n; c++) {
        free(cells->column[c].slots);
        free(cells->column[c].start);
        free(cells->column[c].text);
    }
    free(cells);
}

/* new_cells(n) -> an empty dictionary for each of n columns. */
PyObject *new_cells(PyObject *self, PyObject *args)
{
    int n;
    if (!PyArg_ParseTuple(args, "i", &n)) return NULL;
    Cells *cells = calloc(1, sizeof(Cells) + n * sizeof(Column));
    if (!cells) return PyErr_NoMemory();
    cells->n = n;
    for (int c = 0; c < n; c++) {
        Column *own = &cells->column[c];
        own->mask = 255;
        own->room = 64;
        own->text_room = 1024;
        own->slots = calloc(own->mask + 1, sizeof(Slot));
        own->start = calloc(own->room + 1, sizeof(uint64_t));
        own->text = malloc(own->text_room);
    }
    PyObject *capsule = PyCapsule_New(cells, NAME, free_cells);
    for (int c = 0; c < n && capsule; c++)
        if (!cells->column[c].slots || !cells->column[c].start || !cells->column[c].text) {
            Py_DECREF(capsule);
            return PyErr_NoMemory();
        }
    return capsule;
}

/* -- distinct texts ------------------------------------------------------------------------ */

INLINE uint64_t load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* Up to 8 bytes as a number, zeros behind them. */
INLINE uint64_t load_some(const char *at, int64_t size)
{
    uint64_t word = 0;
    memcpy(&word, at, size < 8 ? size : 8);
    return word;
}

INLINE uint64_t stir(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

static const uint64_t KEEP[9] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff,
                                  0xffffffffffff, 0xffffffffffffff, 0xffffffffffffffff };

/* What a text is looked up by; 16 bytes from where it begins can be read. */
INLINE void describe(Cell *cell)
{
    const uint32_t size = cell->size;
    const char *at = cell->at;
    const uint16_t little = 1;
    if (size <= SHORT && *(const char *)&little) {
        cell->first = load(at) & KEEP[size < 8 ? size : 8];
        cell->second = size > 8 ? load(at + 8) & KEEP[size - 8] : 0;
    } else if (size <= SHORT) {
        cell->first = load_some(at, size);
        cell->second = size > 8 ? load_some(at + 8, size - 8) : 0;
    } else {
        uint64_t hash = size;
        for (uint32_t i = 0; i + 8 < size; i += 8) hash = stir(hash, load(at + i));
        cell->first = hash;
        cell->second = load(at + size - 8);
    }
    cell->hash = stir(stir(stir(size, cell->first), cell->second), 0);
}

static int grow_slots(Column *own)
{
    const uint64_t mask = 2 * own->mask + 1;
    Slot *slots = calloc(mask + 1, sizeof(Slot));
    if (!slots) return 0;
    for (uint64_t s = 0; s <= own->mask; s++) {
        const Slot *old = &own->slots[s];
        if (!old->number) continue;
        Cell cell = { 0 };
        cell.first = old->first;
        cell.second = old->size > SHORT ? load(own->text + old->second + old->size - 8) : old->second;
        uint64_t at = stir(stir(stir(old->size, cell.first), cell.second), 0) & mask;
        while (slots[at].number) at = (at + 1) & mask;
        slots[at] = *old;
    }
    free(own->slots);
    own->slots = slots;
    own->mask = mask;
    return 1;
}

/* Room for one more text of this size. */
static int make_room(Column *own, uint32_t size)
{
    const uint64_t used = own->start[own->n];
    if (own->n + 1 > own->room) {
        uint64_t *start = realloc(own->start, (2 * own->room + 1) * sizeof(uint64_t));
        if (!start) return 0;
        own->start = start;
        own->room *= 2;
    }
    if (used + size + SLACK > own->text_room) {
        const uint64_t room = own->text_room + own->text_room / 2 + size + SLACK;
        char *text = realloc(own->text, room);
        if (!text) return 0;
        own->text = text;
        own->text_room = room;
    }
    return (uint64_t)own->n * 4 < own->mask * 3 || grow_slots(own);
}

/* The code of a text, a new one where it was not there; -2 where there is no memory left. */
INLINE int32_t look_up(Column *own, const Cell *cell)
{
    const int is_long = cell->size > SHORT;
    for (uint64_t at = cell->hash & own->mask;; at = (at + 1) & own->mask) {
        const Slot *slot = &own->slots[at];
        if (!slot->number) break;
        if (slot->first != cell->first || slot->size != cell->size) continue;
        if (is_long ? !memcmp(own->text + slot->second, cell->at, cell->size)
                    : slot->second == cell->second)
            return (int32_t)slot->number - 1;
    }
    if (own->n >= INT32_MAX - 1 || !make_room(own, cell->size)) return -2;
    const uint64_t used = own->start[own->n];
    memcpy(own->text + used, cell->at, cell->size);
    own->start[++own->n] = used + cell->size;
    uint64_t at = cell->hash & own->mask;
    while (own->slots[at].number) at = (at + 1) & own->mask;
    own->slots[at] = (Slot){ cell->first, is_long ? used : cell->second, cell->size, (uint32_t)own->n };
    return (int32_t)own->n - 1;
}

/* The codes of a batch of texts, -1 for an empty one; 0 where there is no memory left. */
static int look_up_all(Column *own, Cell *cells, int n, int32_t *codes)
{
    for (int i = 0; i < n; i++) {
        if (!cells[i].size) continue;
        describe(&cells[i]);
        PREFETCH(&own->slots[cells[i].hash & own->mask]);
    }
    for (int i = 0; i < n; i++) {
        codes[i] = cells[i].size ? look_up(own, &cells[i]) : -1;
        if (codes[i] == -2) return 0;
    }
    return 1;
}

/* -- rows of a block ------------------------------------------------------------------------ */

typedef struct {
    const char *at, *end; /* what is left of the block, which ends with the end of a row */
    char delimiter;
    int n_columns, n_wanted;
    const int32_t *wanted; /* (n_columns): the place of a column among those wanted, or -1 */
    char *plain;           /* where texts with doubled quotes are written without them */
} Text;

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ONES 0x0101010101010101u
#define EQUAL(word, sign) /* the highest bit of the first byte that is this sign */ \
    ((((word) ^ (ONES * (uint8_t)(sign))) - ONES) & ~((word) ^ (ONES * (uint8_t)(sign))) & (ONES << 7))

INLINE const char *find_end(const char *at, char delimiter)
{
    for (;; at += 8) {
        const uint64_t word = load(at);
        const uint64_t found = EQUAL(word, delimiter) | EQUAL(word, '\n') | EQUAL(word, '\r')
                               | EQUAL(word, '"');
        if (found) return at + (__builtin_ctzll(found) >> 3);
    }
}
#else
INLINE const char *find_end(const char *at, char delimiter)
{
    while (*at != delimiter && *at != '\n' && *at != '\r' && *at != '"') at++;
    return at;
}
#endif

/* The text between quotes that begins here, and where it ends; NULL where it does not. */
static const char *find_quoted(Text *a, Cell *cell)
{
    const char *start = a->at + 1, *at = start;
    int doubled = 0;
    for (;; at += 2, doubled = 1) {
        at = at < a->end ? memchr(at, '"', a->end - at) : NULL;
        if (!at) return NULL;
        if (at[1] != '"') break;
    }
    cell->at = start;
    cell->size = (uint32_t)(at - start);
    if (doubled) {
        cell->at = a->plain;
        for (const char *from = start; from < at; from += 1 + (*from == '"')) *a->plain++ = *from;
        cell->size = (uint32_t)(a->plain - cell->at);
    }
    return at + 1;
}

/* The wanted cells of the next row: 1; 0 at the end, -1 where the row is not as expected. */
INLINE int next_row(Text *a, Cell (*cells)[ROWS], int row)
{
    for (;; a->at++) { /* over empty lines */
        if (a->at >= a->end) return 0;
        if (*a->at == '\r' && a->at[1] == '\n') a->at++;
        if (*a->at != '\n') break;
    }
    for (int c = 0; c < a->n_columns; c++) {
        Cell cell;
        const char *stop;
        if (*a->at == '"') {
            stop = find_quoted(a, &cell);
            if (!stop) return -1;
        } else {
            stop = find_end(a->at, a->delimiter);
            cell.at = a->at;
            cell.size = (uint32_t)(stop - a->at);
        }
        if (a->wanted[c] >= 0) {
            cells[a->wanted[c]][row].at = cell.at;
            cells[a->wanted[c]][row].size = cell.size;
        }
        if (c + 1 < a->n_columns) {
            if (*stop != a->delimiter) return -1;
        } else {
            if (*stop == '\r') stop++;
            if (*stop != '\n') return -1;
        }
        a->at = stop + 1;
    }
    return 1;
}

typedef struct {
    int32_t **codes; /* of each wanted column */
    int64_t n, room;
} Codes;

static int grow_codes(Codes *codes, int n_columns)
{
    if (codes->n + ROWS <= codes->room) return 1;
    codes->room = 2 * codes->room + (1 << 14);
    for (int c = 0; c < n_columns; c++) {
        int32_t *more = realloc(codes->codes[c], codes->room * sizeof(int32_t));
        if (!more) return 0;
        codes->codes[c] = more;
    }
    return 1;
}

/* All rows of a block: 1; 0 where there is no memory left, -1 where a row is not as expected. */
static int read_block(Cells *into, Text *a, int header, Codes *codes)
{
    Cell (*cells)[ROWS] = malloc(into->n * sizeof *cells);
    int found = cells ? 1 : 0;
    if (found && header && next_row(a, cells, 0) < 1) found = -1;
    while (found > 0) {
        int rows = 0;
        while (rows < ROWS && (found = next_row(a, cells, rows)) > 0) rows++;
        if (found < 0) break;
        if (!grow_codes(codes, into->n)) { free(cells); return 0; }
        for (int c = 0; c < into->n; c++)
            if (!look_up_all(&into->column[c], cells[c], rows, codes->codes[c] + codes->n)) {
                free(cells);
                return 0;
            }
        codes->n += rows;
    }
    if (!cells) return 0;
    free(cells);
    return found < 0 ? -1 : 1;
}

/* read_cells(cells, block, size, delimiter, wanted, header) -> codes of each wanted column, as
 * bytes, or None where the block is not rows of so many columns, each cell quoted as a whole or
 * not at all. `wanted` says of each column which of the dictionaries is its own, or -1. A
 * header is passed over. The block has SLACK bytes more than its size. */
PyObject *read_cells(PyObject *self, PyObject *args)
{
    PyObject *capsule, *result = NULL;
    Py_buffer block, wanted;
    long long size;
    int delimiter, header;
    if (!PyArg_ParseTuple(args, "Oy*Liy*p", &capsule, &block, &size, &delimiter, &wanted, &header))
        return NULL;
    Cells *into = PyCapsule_GetPointer(capsule, NAME);
    const int whole = size > 0 && size + SLACK <= block.len && ((char *)block.buf)[size - 1] == '\n';
    if (!into || !whole) {
        if (into) PyErr_SetString(PyExc_ValueError, "a block ends with a row, and bytes behind it");
        PyBuffer_Release(&block);
        PyBuffer_Release(&wanted);
        return NULL;
    }
    Codes codes = { calloc(into->n, sizeof(int32_t *)), 0, 0 };
    Text text = { block.buf, (char *)block.buf + size, (char)delimiter,
                  (int)(wanted.len / (Py_ssize_t)sizeof(int32_t)), into->n, wanted.buf,
                  malloc(size + SLACK) };
    char *plain = text.plain;
    int found = 0;
    if (codes.codes && plain) {
        Py_BEGIN_ALLOW_THREADS
        found = read_block(into, &text, header, &codes);
        Py_END_ALLOW_THREADS
    }
    free(plain);
    if (found < 0) {
        Py_INCREF(Py_None);
        result = Py_None;
    } else if (found > 0) {
        result = PyTuple_New(into->n);
        for (int c = 0; c < into->n && result; c++) {
            PyObject *own = PyBytes_FromStringAndSize((char *)codes.codes[c],
                                                      codes.n * (Py_ssize_t)sizeof(int32_t));
            if (!own || PyTuple_SetItem(result, c, own) < 0) Py_CLEAR(result);
        }
    } else {
        PyErr_NoMemory();
    }
    for (int c = 0; c < into->n && codes.codes; c++) free(codes.codes[c]);
    free(codes.codes);
    PyBuffer_Release(&block);
    PyBuffer_Release(&wanted);
    return result;
}

/* join_cells(cells, other, column) -> for each text of the other, its code in the first, as bytes.
 * Those that are not there yet are added; the other is left without this column. */
PyObject *join_cells(PyObject *self, PyObject *args)
{
    PyObject *capsules[2];
    int c;
    if (!PyArg_ParseTuple(args, "OOi", &capsules[0], &capsules[1], &c)) return NULL;
    Cells *into = PyCapsule_GetPointer(capsules[0], NAME);
    Cells *from = PyCapsule_GetPointer(capsules[1], NAME);
    if (!into || !from) return NULL;
    Column *own = &into->column[c], *other = &from->column[c];
    PyObject *result = PyBytes_FromStringAndSize(NULL, other->n * (Py_ssize_t)sizeof(int32_t));
    if (!result) return NULL;
    int32_t *codes = (int32_t *)PyBytes_AsString(result);
    int enough = 1;
    Py_BEGIN_ALLOW_THREADS
    free(other->slots);
    other->slots = NULL;
    for (int64_t first = 0; first < other->n && enough; first += ROWS) {
        Cell cells[ROWS];
        const int n = other->n - first < ROWS ? (int)(other->n - first) : ROWS;
        for (int i = 0; i < n; i++) {
            const uint64_t *start = other->start + first + i;
            cells[i].at = other->text + start[0];
            cells[i].size = (uint32_t)(start[1] - start[0]);
        }
        enough = look_up_all(own, cells, n, codes + first);
    }
    free(other->text);
    other->text = NULL;
    Py_END_ALLOW_THREADS
    if (enough) return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

/* -- in order ------------------------------------------------------------------------------- */

typedef struct {
    uint64_t key; /* its next bytes, so that a greater text has a greater number */
    uint32_t size, code;
} Item;

typedef struct {
    const char **text; /* by code */
    Item *spare;
    int64_t count[8][256];
} Sorter;

INLINE int is_before(const char **text, const Item *a, const Item *b)
{
    const uint32_t least = a->size < b->size ? a->size : b->size;
    const int order = memcmp(text[a->code], text[b->code], least);
    return order ? order < 0 : a->size < b->size;
}

/* Put into order by their keys, byte by byte from the last. */
static void sort_keys(Sorter *a, Item *items, int64_t n)
{
    memset(a->count, 0, sizeof a->count);
    for (int64_t i = 0; i < n; i++)
        for (int b = 0; b < 8; b++) a->count[b][(items[i].key >> (8 * b)) & 255]++;
    Item *from = items, *to = a->spare;
    for (int b = 0; b < 8; b++) {
        int64_t *next = a->count[b], before = 0;
        if (next[(from[0].key >> (8 * b)) & 255] == n) continue; /* all have the same */
        for (int value = 0; value < 256; value++) {
            const int64_t here = next[value];
            next[value] = before;
            before += here;
        }
        for (int64_t i = 0; i < n; i++) to[next[(from[i].key >> (8 * b)) & 255]++] = from[i];
        Item *was = from;
        from = to;
        to = was;
    }
    if (from != items) memcpy(items, from, n * sizeof(Item));
}

/* Texts that share their first bytes up to `depth`; all are different. */
static void sort_texts(Sorter *a, Item *items, int64_t n, uint32_t depth)
{
    const char **text = a->text;
    if (n <= FEW) {
        for (int64_t i = 1; i < n; i++) {
            const Item item = items[i];
            int64_t at = i;
            for (; at > 0 && is_before(text, &item, &items[at - 1]); at--) items[at] = items[at - 1];
            items[at] = item;
        }
        return;
    }
    const char *first = text[items[0].code];
    uint32_t shared = items[0].size;
    for (int64_t i = 1; i < n && shared > depth; i++) {
        const char *own = text[items[i].code];
        uint32_t at = depth;
        shared = items[i].size < shared ? items[i].size : shared;
        while (at < shared && own[at] == first[at]) at++;
        shared = at;
    }
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *own = (const unsigned char *)text[items[i].code];
        uint64_t key = 0;
        for (uint32_t b = shared; b < shared + 8; b++)
            key = key << 8 | (b < items[i].size ? own[b] : 0);
        items[i].key = key;
    }
    sort_keys(a, items, n);
    for (int64_t start = 0, stop; start < n; start = stop) {
        /* Those that end within the key come first; they differ by zeros at their end alone. */
        for (stop = start + 1; stop < n && items[stop].key == items[start].key;) stop++;
        int64_t over = start;
        for (int64_t i = start; i < stop; i++)
            if (items[i].size <= shared + 8) {
                const Item item = items[i];
                int64_t at = i;
                for (; at > over; at--) items[at] = items[at - 1];
                for (; at > start && item.size < items[at - 1].size; at--) items[at] = items[at - 1];
                items[at] = item;
                over++;
            }
        if (stop - over > 1) sort_texts(a, items + over, stop - over, shared + 8);
    }
}

/* Items in order, from the sizes that they have; 0 where there is no memory left. */
static int sort_all(Item *items, int64_t n, const char **text)
{
    Sorter *sorter = malloc(sizeof(Sorter));
    Item *spare = malloc((n + 1) * sizeof(Item));
    const int enough = sorter && spare;
    if (enough) {
        sorter->text = text;
        sorter->spare = spare;
        sort_texts(sorter, items, n, 0);
    }
    free(sorter);
    free(spare);
    return enough;
}

/* name_cells(cells, column) -> the texts of a column in rising order, and the place of each
 * code among them, as bytes; or None where one is not UTF-8. Leaves the column empty. */
PyObject *name_cells(PyObject *self, PyObject *args)
{
    PyObject *capsule, *names = NULL, *place, *result = NULL;
    int c;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &c)) return NULL;
    Cells *cells = PyCapsule_GetPointer(capsule, NAME);
    if (!cells) return NULL;
    Column *own = &cells->column[c];
    Item *items = malloc((own->n + 1) * sizeof(Item));
    const char **text = malloc((own->n + 1) * sizeof(char *));
    place = PyBytes_FromStringAndSize(NULL, own->n * (Py_ssize_t)sizeof(int32_t));
    int enough = items && text && place;
    if (enough) {
        int32_t *rank = (int32_t *)PyBytes_AsString(place);
        Py_BEGIN_ALLOW_THREADS
        free(own->slots);
        own->slots = NULL;
        for (int64_t i = 0; i < own->n; i++) {
            text[i] = own->text + own->start[i];
            items[i] = (Item){ 0, (uint32_t)(own->start[i + 1] - own->start[i]), (uint32_t)i };
        }
        enough = sort_all(items, own->n, text);
        for (int64_t i = 0; i < own->n && enough; i++) rank[items[i].code] = (int32_t)i;
        Py_END_ALLOW_THREADS
    }
    names = enough ? PyList_New(own->n) : PyErr_NoMemory();
    for (int64_t i = 0; i < own->n && names; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(text[items[i].code], items[i].size, NULL);
        if (!name || PyList_SetItem(names, i, name) < 0) Py_CLEAR(names);
    }
    if (names) {
        result = PyTuple_Pack(2, names, place);
    } else if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        Py_INCREF(Py_None);
        result = Py_None;
    }
    free(own->text);
    own->text = NULL;
    Py_XDECREF(names);
    Py_XDECREF(place);
    free(items);
    free(text);
    return result;
}

/* sort_names(names) -> the order of a list of different texts, as bytes of 32-bit numbers; None
 * where one of them is no text, or cannot be written in UTF-8. */
PyObject *sort_names(PyObject *self, PyObject *args)
{
    PyObject *names, *order = NULL;
    if (!PyArg_ParseTuple(args, "O", &names)) return NULL;
    const Py_ssize_t n = PyList_Size(names);
    if (n < 0) return NULL;
    Item *items = malloc((n + 1) * sizeof(Item));
    const char **text = malloc((n + 1) * sizeof(char *));
    int enough = items && text && n < INT32_MAX, all = 1;
    for (Py_ssize_t i = 0; i < n && enough && all; i++) {
        Py_ssize_t size = 0;
        PyObject *name = PyList_GetItem(names, i);
        text[i] = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
        items[i] = (Item){ 0, (uint32_t)size, (uint32_t)i };
        all = text[i] && size < UINT32_MAX;
    }
    PyErr_Clear();
    if (enough && all) enough = sort_all(items, n, text); /* with the lock: the texts are not ours */
    if (enough && all) order = PyBytes_FromStringAndSize(NULL, n * (Py_ssize_t)sizeof(uint32_t));
    if (order) {
        uint32_t *out = (uint32_t *)PyBytes_AsString(order);
        for (Py_ssize_t i = 0; i < n; i++) out[i] = items[i].code;
    } else if (enough && !all) {
        Py_INCREF(Py_None);
        order = Py_None;
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    free(items);
    free(text);
    return order;
}
