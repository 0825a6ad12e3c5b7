/** Of the lines of a file, or the pages of a Parquet file. */
export const COMPRESSIONS = ['gzip', 'zstd', 'none'] as const;

export type Compression = (typeof COMPRESSIONS)[number];

/** For JSON two thirds faster than zlib's default, and 4 % larger. */
export const GZIP_LEVEL = 4;
