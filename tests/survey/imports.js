// SPDX-License-Identifier: Apache-2.0
// imports.js - Runs in a sandbox of the survey: import an installed package, and print how that went.
//
// The sandbox has SURVEY_NAME and SURVEY_HINT in its environment. A package without an entry is judged by its program, if it has one, or by its metadata.
{
  const fs = require('fs');
  const path = require('path');
  const { SURVEY_NAME: NAME, SURVEY_HINT: HINT } = process.env;
  const home = process.env.NODE_PATH.split(':').map((d) => path.join(d, NAME)).find((d) => fs.existsSync(d));
  const about = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'));
  const programs = Object.keys(about.bin || {}).sort((a, b) => a.length - b.length); // the shortest name is the main one
  const program = typeof about.bin === 'string' ? about.bin : (about.bin || {})[programs[0]];
  const hasEntry = Boolean(about.main || about.exports) || fs.existsSync(path.join(home, 'index.js'));
  const result = { version: about.version, how: HINT || (hasEntry ? 'import' : program ? 'command' : 'metadata') };
  try {
    if (result.how === 'import') await import(NAME);
    if (result.how === 'command') {
      require('child_process').execFileSync(process.execPath, [path.join(home, program), '--version'], { timeout: 60000, stdio: ['ignore', 'pipe', 'pipe'] });
    }
  } catch (e) {
    result.error = result.how + ': ' + String((e && (e.stderr || e.message)) || e).trim().slice(0, 300);
  }
  console.log('\nSURVEY ' + JSON.stringify(result));
}
