// Names the ten slowest files of vitest's JSON reports and what failed, and adds the reports up in one last line.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const say = (line) => void process.stdout.write(`${line}\n`);
const sum = { passed: 0, failed: 0, skipped: 0 };
const files = [];
for (const path of process.argv.slice(2)) {
  try {
    const report = JSON.parse(readFileSync(path, 'utf8'));
    sum.passed += report.numPassedTests;
    sum.failed += report.numFailedTests;
    sum.skipped += report.numPendingTests + report.numTodoTests;
    files.push(...report.testResults);
    // A file that does not load has no tests that could fail.
    sum.failed += report.testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
    ).length;
  } catch (error) {
    say(`no report: ${error.message}`);
    sum.failed += 1;
  }
}
say('Slowest files:');
const seconds = ({ startTime, endTime }) => (endTime - startTime) / 1000;
for (const file of files.toSorted((a, b) => seconds(b) - seconds(a)).slice(0, 10))
  say(`${seconds(file).toFixed(1).padStart(7)} s  ${relative(process.cwd(), file.name)}`);
// Last, since of a long output often only the end is kept.
for (const file of files.filter(({ status }) => status === 'failed')) {
  const named = file.assertionResults.filter(({ status }) => status === 'failed');
  const failures =
    named.length === 0 ? [{ fullName: '(the file itself)', failureMessages: [file.message] }] : named;
  for (const { fullName, failureMessages } of failures)
    say(
      `FAILED ${relative(process.cwd(), file.name)}: ${fullName}\n${failureMessages.join('\n').slice(0, 2000)}`,
    );
}
say(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
process.exitCode = sum.failed === 0 ? 0 : 1;
