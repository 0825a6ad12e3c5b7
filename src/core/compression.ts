/** How rows are compressed inside a file. */
export const COMPRESSIONS = ['gzip', 'zstd', 'none'] as const;

export type Compression = (typeof COMPRESSIONS)[number];

/** On JSON two thirds faster than zlib's default, and 4 % larger. */
export const GZIP_LEVEL = 4;
