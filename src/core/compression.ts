/** How lines of a file, or pages of a Parquet file, are compressed. */
export const COMPRESSIONS = ['gzip', 'zstd', 'none'] as const;

export type Compression = (typeof COMPRESSIONS)[number];

/** On JSON two thirds faster than zlib's default, and 4 % larger. */
export const GZIP_LEVEL = 4;
