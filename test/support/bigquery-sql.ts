const TOKENS = /'(?:[^'\\]|\\.)*'|`[^`]*`|--[^\n]*|;|[^'`;-]+|-/g;

/** BigQuery's words, and DuckDB's for the same. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/\bINT64\b/g, 'BIGINT'],
  [/\bSTRING\b/g, 'VARCHAR'],
  [/\bBIGNUMERIC\b/g, 'DECIMAL(38, 18)'],
  [/\bCURRENT_TIMESTAMP\(\)/g, 'now()'],
  [/\bTIMESTAMP\b/g, 'TIMESTAMPTZ'],
  [/\bJSON_VALUE\(/g, 'json_extract_string('],
  [/\bJSON_QUERY\(/g, 'json_extract('],
  [/\bPARSE_JSON\(/g, 'json('],
  [/, wide_number_mode => $/g, ''],
];

/** The statements of a script, put into DuckDB's words as far as loads use them. */
export function bigQueryStatements(script: string): string[] {
  const statements = [''];
  let isMode = false;
  for (const [token] of script.matchAll(TOKENS)) {
    if (token === ';') statements.push('');
    else if (token.startsWith('--')) continue;
    else if (isMode) isMode = false;
    else {
      isMode = token.endsWith('wide_number_mode => ');
      statements[statements.length - 1] += inDuckDB(token);
    }
  }
  return statements
    .map((statement) => statement.replace(/\n(PARTITION BY DATE\(|CLUSTER BY )[^]*$/, '').trim())
    .filter((statement) => statement !== '')
    .flatMap(oneByOne);
}

function inDuckDB(token: string): string {
  if (token.startsWith("'")) {
    const text = token.slice(1, -1).replaceAll(/\\(.)/g, '$1');
    return `'${text.replaceAll("'", "''")}'`;
  }
  // One dataset: the last name is the table's.
  if (token.startsWith('`')) return `"${token.slice(1, -1).split('.').at(-1)}"`;
  return WORDS.reduce((text, [word, other]) => text.replaceAll(word, other), token);
}

/** It adds one column a statement. */
function oneByOne(statement: string): string[] {
  const [, table, adds] = /^(ALTER TABLE \S+)\s+(ADD COLUMN[^]*)$/.exec(statement) ?? [];
  if (table === undefined || adds === undefined) return [statement];
  return adds.split(/,\n/).map((add) => `${table} ${add}`);
}
