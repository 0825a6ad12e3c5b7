/** The Prometheus text format, read as its specification says: series as written → value. */
export function parseMetrics(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const found = /^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$/.exec(line);
    if (found?.[1] === undefined) throw new Error(`not a line of metrics: ${line}`);
    if (series.has(found[1])) throw new Error(`twice: ${found[1]}`);
    // A mean of nothing is no number, and Prometheus reads that in any case.
    const value = found[2] === '+Inf' ? Infinity : Number(found[2]);
    if (Number.isNaN(value) && !/^nan$/i.test(found[2] ?? '')) throw new Error(`no number: ${line}`);
    series.set(found[1], value);
  }
  return series;
}

/** Names of metrics by their `# TYPE` lines. */
export function typesIn(text: string): Map<string, string> {
  return new Map(
    Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = '', type = '']) => [name, type]),
  );
}
