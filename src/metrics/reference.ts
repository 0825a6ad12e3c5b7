import { METRICS } from './catalogue.ts';

/** Every metric of our own, as a Markdown table. */
export function metricReference(): string {
  const rows = METRICS.map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    help.replaceAll('|', String.raw`\|`),
  ]);
  return [['Metric', 'Type', 'Labels', 'What it counts'], ['---', '---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
